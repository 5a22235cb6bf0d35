//! Escaping by type: text, code, fences, tables and details that cannot break out of their place.
