"""Charts drawn without JavaScript."""

from xml.etree import ElementTree

import numpy as np

from numtok.analysis.picture import Axis, BarMarks, Panel
from numtok.cli.output.pages.page import PageChart
from numtok.cli.output.pages.write import draw
from tests.cases import case


def test_names_with_characters_that_xml_cannot_hold_are_drawn_with_escapes() -> None:
    ones = np.ones(2)
    for char, shown in (("\x01", r"\x01"), ("\x1b", r"\x1b"), ("\uffff", r"\uffff"), ("é", "é")):
        with case(char=char):
            names = (f"x{char}", "y")
            bars = BarMarks(
                label=f"of {char}",
                places=np.arange(2.0),
                lengths=ones,
                low=ones,
                high=ones,
                picks=names,
            )
            panel = Panel(
                title=f"by {char}",
                x=Axis(label="error"),
                y=Axis(label=f"group {char}", names=names),
                marks=[bars],
            )
            still = draw(PageChart(name="chart", heading="", text="", panel=panel)).still
            assert f"x{shown}" in "".join(ElementTree.fromstring(still).itertext())
