"""The three commands. Importing this package first makes the shared imports cheap.

msgspec asks for `typing_extensions` and does without it; where some other package brought it along,
importing it would cost a fifth of a small verb's start-up. So it is hidden while msgspec is imported.
Imports create many objects that live to the end, and looking for garbage among them again and again
would cost a tenth: so collections are made rare.
"""

import gc
import sys

gc.set_threshold(50_000, 20, 100)

if "msgspec" not in sys.modules and "typing_extensions" not in sys.modules:
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]  # this is how an import is refused
    try:
        import msgspec  # noqa: F401  # imported for what it no longer imports
    finally:
        del sys.modules["typing_extensions"]
