"""Compiles a kernel with numba to object code that runs without numba.

The object code has one function, which takes the array of words described in
:mod:`numtok.kernel_types`, calls the kernel, and writes what it returns to the first words.
Importing numba takes half a second, so this module is imported only to compile.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numba
from llvmlite import ir
from numba import types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from numtok.errors import UsageError
from numtok.kernel_types import ArrayType, KernelType, ScalarType, Signature, StructType

_NO_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_WORD = ir.IntType(64)
#: Words of NumPy's ``PyArrayObject`` with the addresses of the data and of the shape.
_DATA = object.__basicsize__ // 8
_SHAPE = _DATA + 2
#: C functions that object code may call; a loaded kernel has no other library to call.
_LIBRARY = frozenset({"memcpy", "memmove", "memset"})

if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
    raise UsageError("numtok needs numba's compiler (NUMBA_DISABLE_JIT=1). Unset NUMBA_DISABLE_JIT")


def compilable(function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """Return a function that kernels can call, as numba knows it."""
    return numba.njit(**options)(function)


def type_of_compilable(dispatcher: Any) -> Any:
    """Return the type with which a kernel refers to what :func:`compilable` returned."""
    return types.Dispatcher(dispatcher)


def type_of_intrinsic(definition: Callable[..., Any]) -> Any:
    """Return the type with which a kernel refers to a function that generates LLVM code."""
    context = cpu_target.typing_context
    declare: Any = intrinsic  # numba's annotation has the wrong arguments
    declared = declare(definition)
    context.refresh()
    return context.resolve_value_type(declared)


@global_compiler_lock  # type: ignore[untyped-decorator]
def compile_kernel(
    function: Callable[..., Any], signature: Signature, options: Mapping[str, Any], entry: str
) -> bytes:
    """Return the object code of a kernel, in which ``entry`` is the name of its function."""
    declare: Any = numba.njit  # its annotation has no options of wrappers
    dispatcher = declare(**options, **_NO_WRAPPERS)(function)
    arguments = tuple(map(_numba_type, signature.arguments))
    dispatcher.compile(_result_type(signature)(*arguments))
    compiled = dispatcher.overloads[arguments]
    codegen = cpu_target.target_context.codegen()
    module = llvm.parse_bitcode(compiled.library._final_module.as_bitcode())
    module.link_in(llvm.parse_assembly(str(_entry(compiled, signature, entry))))
    _remove_unused(module, codegen, entry)
    code: bytes = codegen._tm.emit_object(module)
    return code


def _remove_unused(module: Any, codegen: Any, entry: str) -> None:
    """Remove functions that the entry does not call."""
    for function in module.functions:
        if not function.is_declaration and function.name != entry:
            function.linkage = "internal"
    builder = llvm.create_pass_builder(codegen._tm, llvm.create_pipeline_tuning_options())
    manager = llvm.create_new_module_pass_manager()
    manager.add_global_dead_code_eliminate_pass()
    manager.run(module, builder)
    called = {each.name for each in module.functions if each.is_declaration}
    if missing := {name for name in called if not name.startswith("llvm.")} - _LIBRARY:
        raise TypeError(f"a kernel cannot call {', '.join(sorted(missing))}")


def _entry(compiled: Any, signature: Signature, name: str) -> ir.Module:
    """Return a module with the function that unpacks words and calls the kernel."""
    context = cpu_target.target_context
    module = context.codegen()._create_empty_module(name)
    function_type = ir.FunctionType(ir.VoidType(), [_WORD.as_pointer()])
    entry = ir.Function(module, function_type, name)
    builder = ir.IRBuilder(entry.append_basic_block())
    words = _Words(context, builder, entry.args[0])
    values = [words.value(each) for each in signature.arguments]
    types_of = compiled.signature
    called = context.declare_function(module, compiled.fndesc)
    _, result = context.call_conv.call_function(
        builder, called, types_of.return_type, types_of.args, values
    )
    if signature.count == 1:
        words.store([result])
    elif signature.count:
        words.store([builder.extract_value(result, k) for k in range(signature.count)])
    builder.ret_void()
    return module


class _Words:
    """Reads the words that a compiled kernel gets one after another, and writes its results."""

    def __init__(self, context: Any, builder: Any, pointer: Any) -> None:
        self._context, self._builder, self._pointer = context, builder, pointer
        self._read = 0

    def value(self, kind: KernelType) -> Any:
        """Return the value of the next argument."""
        builder = self._builder
        if isinstance(kind, StructType):
            fields = [self.value(each) for each in kind.fields]
            return self._context.make_tuple(builder, _numba_type(kind), fields)
        if isinstance(kind, ArrayType):
            return self._array(kind)
        word, wanted = self._next(), self._context.get_value_type(_numba_type(kind))
        if isinstance(wanted, ir.DoubleType):
            return builder.bitcast(word, wanted)
        return word if wanted == _WORD else builder.trunc(word, wanted)

    def _array(self, kind: ArrayType) -> Any:
        of = _numba_type(kind)
        array = self._context.make_array(of)(self._context, self._builder)
        fields = self._builder.inttoptr(self._next(), _WORD.as_pointer())
        data = self._builder.inttoptr(self._load(fields, _DATA), array.data.type)
        lengths = self._builder.inttoptr(self._load(fields, _SHAPE), _WORD.as_pointer())
        shape = [self._load(lengths, axis) for axis in range(kind.axes)]
        itemsize = _WORD(self._context.get_abi_sizeof(self._context.get_data_type(of.dtype)))
        strides = [itemsize]
        for length in reversed(shape[1:]):
            strides.insert(0, self._builder.mul(strides[0], length))
        populate_array(  # type: ignore[no-untyped-call]
            array, data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None
        )
        return array._getvalue()

    def store(self, values: list[Any]) -> None:
        """Write results to the first words."""
        for k, value in enumerate(values):
            if isinstance(value.type, ir.DoubleType):
                value = self._builder.bitcast(value, _WORD)
            elif value.type.width == 1:
                value = self._builder.zext(value, _WORD)
            elif value.type != _WORD:
                value = self._builder.sext(value, _WORD)
            self._builder.store(value, self._builder.gep(self._pointer, [_WORD(k)]))

    def _next(self) -> Any:
        self._read += 1
        return self._load(self._pointer, self._read - 1)

    def _load(self, pointer: Any, index: int) -> Any:
        return self._builder.load(self._builder.gep(pointer, [_WORD(index)]))


def _numba_type(kind: KernelType) -> Any:
    if isinstance(kind, ArrayType):
        of: Any = numba.from_dtype(kind.dtype)
        return types.Array(of, kind.axes, "C", readonly=kind.readonly)
    if isinstance(kind, StructType):
        fields = kind.kind(*map(_numba_type, kind.fields))
        return types.BaseTuple.from_types(fields, kind.kind)  # type: ignore[no-untyped-call]
    assert isinstance(kind, ScalarType)
    return getattr(types, kind.name)


def _result_type(signature: Signature) -> Any:
    of = getattr(types, signature.result)
    return of if signature.count < 2 else types.UniTuple(of, signature.count)  # type: ignore[no-untyped-call]
