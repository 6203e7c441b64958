"""A fake device: its tensors hold values on the CPU but report another device.

Within ``with FakeDevice("cuda") as fake:``, ``.to("cuda")`` and ``torch.zeros(3, device="cuda")``
return such tensors, and so do all operations on them. As on a GPU, an operation on a host tensor
and a device tensor raises. Numbers are exempt: those of Python, and tensors without axes in
elementwise operations. Only ``to``, ``cpu``, ``cuda`` and ``copy_`` move values between host and
device. One rule is stricter: indexing a device tensor with host indices raises, whereas CUDA
accepts them and waits.

``fake.syncs`` counts what makes the host wait for the device:

- numbers and shapes that depend on values (``item``, ``bool``, ``tolist``, ``nonzero``, masks as
  indices, ``unique``)
- copies to the host
- copies from host memory that is not pinned

Below Python, PyTorch sees these tensors on its device ``meta``, whose gradients a CPU build can
compute. Code that checks the device type there (attention for its kernel, autocast) behaves as for
``meta``, so GPU kernels and bfloat16 are not tested.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, cast

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

_META, _CPU = torch.device("meta"), torch.device("cpu")
_aten = torch.ops.aten
_WIDE = (torch.float64, torch.complex128)
_WAITED_FOR = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}


class OnDevice(Tensor):
    """A tensor that reports the device ``of``; ``held`` has its values, on the CPU."""

    held: Tensor
    of: "FakeDevice"

    @staticmethod
    def __new__(cls, held: Tensor, of: "FakeDevice") -> "OnDevice":
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=_META,
        )
        made.held, made.of = held, of
        return made

    def __init__(self, held: Tensor, of: "FakeDevice") -> None:
        """Do nothing: ``__new__`` sets all attributes."""

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """Return the device that the tensor reports."""
        return torch.device(self.of.type, 0)

    def __repr__(self) -> str:  # type: ignore[override]
        return f"{self.held!r} on {self.device}"

    def __deepcopy__(self, memo: dict[int, Any]) -> "OnDevice":
        made = OnDevice(self.held.detach().clone(), self.of)
        return cast(OnDevice, made.requires_grad_(self.requires_grad))

    # ``nn.Module.to`` needs these methods to keep the parameters of a module whose tensors change
    # their class, so that tied weights stay tied.
    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        return ["held"], self.of

    @staticmethod
    def __tensor_unflatten__(inner: Mapping[str, Tensor], of: Any, *sizes: Any) -> "OnDevice":
        return OnDevice(inner["held"], of)

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        of = next(one.of for one in _leaves(args, kwargs) if isinstance(one, OnDevice))
        return of.worked_out(func, args, kwargs)


class FakeDevice:
    """A fake device of some type, such as ``cuda``, active within the ``with`` block.

    ``float64``: whether it supports 64-bit floats; MPS does not.
    """

    def __init__(self, type_: str = "cuda", float64: bool = True) -> None:
        self.type, self.float64 = type_, float64
        self.syncs: Counter[str] = Counter()
        self._stack = ExitStack()

    @property
    def device(self) -> torch.device:
        """Return the device, as ``--device`` names it."""
        return torch.device(self.type)

    def __enter__(self) -> "FakeDevice":
        self._stack.enter_context(_Calls(self))
        self._stack.enter_context(_Operations(self))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def names(self, thing: object) -> bool:
        """Return whether ``thing`` is this device or its name."""
        if isinstance(thing, str):
            return thing.partition(":")[0] == self.type
        return isinstance(thing, torch.device) and thing.type == self.type

    def holding(self, values: Tensor) -> OnDevice:
        """Return a tensor of the device with these values."""
        if not self.float64 and values.dtype in _WIDE:
            raise TypeError(f"Cannot convert a tensor to {values.dtype} on {self.type}")
        return OnDevice(values, self)

    def worked_out(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run an ATen operation on the held values."""
        tensors = [one for one in _leaves(args, kwargs) if isinstance(one, Tensor)]
        held = {id(one.held): one for one in tensors if isinstance(one, OnDevice)}
        asked = kwargs.get("device")
        if not held and asked != _META:
            return func(*args, **kwargs)
        if func is _aten.copy_.default:
            self._copied(args[1], isinstance(args[0], OnDevice))
        elif func is _aten._to_copy.default:
            self._copied(
                args[0], isinstance(args[0], OnDevice) if asked is None else asked == _META
            )
        else:
            _check(func, args, tensors)
            self._count(func, args)
        if asked == _META:
            kwargs = {**kwargs, "device": _CPU}
        values = {key: _changed(_values, one) for key, one in kwargs.items()}
        made = func(*(_changed(_values, one) for one in args), **values)
        if torch.Tag.inplace_view in func.tags:  # update the shape of the wrapper
            with no_dispatch():
                func(*args, **kwargs)
        here = asked == _META or asked is None
        if func is _aten.copy_.default and not isinstance(args[0], OnDevice):
            return args[0]

        def given_back(one: Any) -> Any:
            if not isinstance(one, Tensor):
                return one
            before = held.get(id(one))
            if before is None:
                return self.holding(one)
            assert before.shape == one.shape, f"{func} changes a shape in place"
            return before

        return _changed(given_back, made) if here else made

    def _copied(self, source: Tensor, to_device: bool) -> None:
        if isinstance(source, OnDevice) and not to_device:
            self.syncs["copy to the host"] += 1
        # A host tensor without axes is passed as a kernel argument.
        if to_device and not isinstance(source, OnDevice) and source.dim() and not _pinned(source):
            self.syncs["copy from memory that is not pinned"] += 1

    def _count(self, func: Any, args: Sequence[Any]) -> None:
        if func in (_aten.index.Tensor, _aten.index_put_.default, _aten.index_put.default):
            if any(one is not None and one.dtype in (torch.bool, torch.uint8) for one in args[1]):
                self.syncs["index by a mask"] += 1
        elif not _WAITED_FOR.isdisjoint(func.tags):
            self.syncs[str(func).removeprefix("aten.").partition(".")[0]] += 1


def _leaves(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Any]:
    for one in (*args, *kwargs.values()):
        if isinstance(one, (list, tuple)):
            yield from _leaves(one, {})
        else:
            yield one


def _changed(change: Callable[[Any], Any], one: Any) -> Any:
    if isinstance(one, (list, tuple)):
        return type(one)([_changed(change, part) for part in one])
    return change(one)


def _values(one: Any) -> Any:
    return one.held if isinstance(one, OnDevice) else one


def _pinned(one: Tensor) -> bool:
    return getattr(one, "_fake_pinned", False)


def _check(func: Any, args: Sequence[Any], tensors: Sequence[Tensor]) -> None:
    """Raise RuntimeError if an operation mixes host and device tensors."""
    plain = [one for one in tensors if not isinstance(one, OnDevice)]
    if not plain or len(plain) == len(tensors):
        return
    written = [
        given
        for argument, given in zip(func._schema.arguments, args, strict=False)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]
    numbers = torch.Tag.pointwise in func.tags and all(one.dim() == 0 for one in plain)
    if not numbers or any(one is other for one in plain for other in written):
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{next(one.device for one in tensors if isinstance(one, OnDevice))} and cpu, in {func}"
        )


class _Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, of: FakeDevice) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._of = of

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        return self._of.worked_out(func, args, kwargs or {})


class _Calls(TorchFunctionMode):
    """Handle calls that check for the device before PyTorch dispatches operations."""

    def __init__(self, of: FakeDevice) -> None:
        super().__init__()
        self._of = of

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        kwargs, fake = kwargs or {}, self._of
        first = args[0] if args else None
        if func in (torch.tensor, torch.as_tensor) and fake.names(kwargs.get("device")):
            return func(*args, **{**kwargs, "device": _CPU}).to(_META)
        if func is Tensor.cuda and fake.type == "cuda":
            return Tensor.to(cast(Tensor, first), _META)
        if func is Tensor.pin_memory and not isinstance(first, OnDevice):
            pinned = cast(Tensor, first).clone()
            pinned._fake_pinned = True  # type: ignore[attr-defined]
            return pinned
        if isinstance(first, OnDevice):
            if func is Tensor.tolist:
                fake.syncs["tolist"] += 1
                return first.held.tolist()
            if func in (Tensor.numpy, Tensor.__array__):
                raise TypeError(
                    f"can't convert {first.device} device type tensor to numpy. Use Tensor.cpu() "
                    "to copy the tensor to host memory first."
                )
        strings = func is Tensor.to
        args = [self._below(one, strings) for one in args]
        kwargs = {key: self._below(one, key == "device") for key, one in kwargs.items()}
        return func(*args, **kwargs)

    def _below(self, one: Any, strings: bool) -> Any:
        """Replace the fake device with the one that PyTorch sees."""
        if isinstance(one, torch.device) or (strings and isinstance(one, str)):
            return _META if self._of.names(one) else one
        return one
