//! stub
use super::Downstream;
use crate::domain::config::RepoConfig;
use crate::domain::estate::Estate;
use crate::domain::ids::RootKey;
use crate::domain::plan::Plan;
/// The roots downstream of those whose plan changes something. `plans` are the plans of this run.
pub fn blast(estate: &Estate, config: &RepoConfig, plans: &[(RootKey, &Plan)]) -> Vec<Downstream> {
    let _ = (estate, config, plans);
    unimplemented!()
}
