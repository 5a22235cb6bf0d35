//! All integration tests as one binary, one module per part.

mod estate;
