"""The console commands `flowstone`, `akm` and `orun`.

Importing creates many objects that live to the end, and looking for garbage among them again and
again is a seventh of a small verb's start-up: so collections are made rare before anything else.
"""

import gc

gc.set_threshold(50_000, 20, 100)
