//! The one match over what can happen. Pure: the same facts and event give the same decision.
