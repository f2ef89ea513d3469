"""Texts of requests that are not just any text.

The API's document tells clients what fits; what does not is refused by the code, in words that say what to do.
"""

from typing import Annotated

import msgspec

KEY = r"^(?!\.{1,2}$)[A-Za-z0-9._:-]{1,128}$"
VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]{0,254}$"
CHOICE = r"^[A-Za-z0-9_@~][A-Za-z0-9_@~.:/+,=()\[\] -]{0,254}$"
SERVER = r"^[A-Za-z0-9_@][A-Za-z0-9_@.:/+ -]{0,127}$"
NOT_BLANK = r"\S"
WEB = r"^https?://"
_COMMIT = r"^[0-9A-Fa-f]{7,64}$"
BRANCH = r"^(?![-./])(?!@$)(?!HEAD$)(?!.*(\.\.|@\{|//|/\.|\.lock(/|$)))(?!.*[/.]$)[^\x00-\x20\x7f~^:?*\[\\]{1,250}$"
LINE = r"^[^\x00-\x1f\x7f]*$"
PARAGRAPHS = r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]*$"
TOKEN = r"^[\x21-\x7e]{1,16384}$"  # noqa: S105 - what tokens look like
MOST_LABELS, LONGEST_LABEL, LONGEST_LABEL_VALUE = 64, 200, 1000
_QUAD, _THREE, _TWO = "[A-Za-z0-9+/]{4}", "[A-Za-z0-9+/]{3}=", "[A-Za-z0-9+/]{2}=="
_SECRET = rf"^whsec_(({_QUAD}){{8,20}}({_QUAD}|{_THREE}|{_TWO})?|({_QUAD}){{21}}{_TWO})$"


def _fitting(pattern: str, **more: object) -> msgspec.Meta:
    return msgspec.Meta(extra_json_schema={"pattern": pattern, **more})


Key = Annotated[str, _fitting(KEY)]
"""A client's own id of a session."""
Choice = Annotated[str, _fitting(CHOICE)]
"""The name of a model, a variant or a mode."""
Prompt = Annotated[str, _fitting(NOT_BLANK)]
WebAddress = Annotated[str, _fitting(WEB)]
AbsolutePath = Annotated[str, _fitting("^/")]
Branch = Annotated[str, _fitting(BRANCH)]
Commit = Annotated[str, _fitting(_COMMIT)]
Base64 = Annotated[str, _fitting(rf"^({_QUAD})*({_THREE}|{_TWO})?$")]
WebhookSecret = Annotated[str, _fitting(_SECRET)]
_Value = Annotated[str, _fitting(r"^[^\x00]*$")]
Line = Annotated[str, _fitting(LINE)]
Paragraphs = Annotated[str, _fitting(PARAGRAPHS)]
"""Text of several lines."""
Token = Annotated[str, _fitting(TOKEN)]
_LabelValue = Annotated[str, _fitting(LINE, maxLength=LONGEST_LABEL_VALUE)]
_LABEL = {"pattern": LINE, "minLength": 1, "maxLength": LONGEST_LABEL}
Labels = Annotated[
    dict[str, _LabelValue],
    msgspec.Meta(extra_json_schema={"propertyNames": _LABEL, "maxProperties": MOST_LABELS}),
]
"""What clients mark a session with."""
Variables = Annotated[dict[str, _Value], msgspec.Meta(extra_json_schema={"propertyNames": {"pattern": VARIABLE}})]
"""Variables of a process."""
BY_SERVER = msgspec.Meta(extra_json_schema={"propertyNames": {"pattern": SERVER}})
"""Of a mapping by names of MCP servers."""
