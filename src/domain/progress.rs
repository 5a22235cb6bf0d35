//! Follows one apply through the tool's event stream: which resource is where. The rules that make this
//! true of the stream are in the notes on the tools; nothing here runs anything.

use super::job::ResourceState;
use super::plan::Plan;

/// Follows an apply.
#[derive(Clone, Debug)]
pub struct Follower {
    resources: Vec<ResourceState>,
}

impl Follower {
    /// All resources of the plan, pending.
    pub fn new(plan: &Plan) -> Self {
        let _ = plan;
        unimplemented!()
    }

    /// Takes one line of the stream; whether anything moved.
    pub fn line(&mut self, line: &str) -> Moved {
        let _ = line;
        unimplemented!()
    }

    /// Where each resource stands now, in plan order.
    pub fn resources(&self) -> &[ResourceState] {
        &self.resources
    }
}

/// Whether a line moved a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// Yes.
    Yes,
    /// No.
    No,
}
