//! stub
use super::ResourceReach;
use crate::domain::estate::Estate;
use crate::domain::ids::RootKey;
use crate::domain::plan::Plan;
/// The by-resource list. `plans` are the plans of this run; a root without one is not followed into.
pub fn resources(estate: &Estate, plans: &[(RootKey, &Plan)]) -> Vec<ResourceReach> {
    let _ = (estate, plans);
    unimplemented!()
}
/// stub
pub struct References;
