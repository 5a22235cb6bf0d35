//! stub
use super::http::{Call, Reply};
use super::world::World;
pub(super) fn fits(_: &Call) -> bool {
    false
}
pub(super) fn serve(_: &World, _: &Call) -> Reply {
    Reply::empty(404)
}
