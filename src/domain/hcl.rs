//! Facts of one configuration file, parsed from its bytes: what it declares and what each part refers to. Values are kept as
//! expressions, not evaluated; nothing here looks at another file.

use serde::{Deserialize, Serialize};

mod body;
mod expr;
mod json;
mod native;

pub use expr::{Call, Expr, ForExpr, Reference, Step};

/// A named expression: an argument, a local, an entry of a var file.
pub type Named = (String, Expr);

/// What a file declares. Kept per blob, so a file is parsed once in its life.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FileFacts {
    /// `backend` blocks, and `cloud` blocks as the kind `cloud`.
    pub backends: Vec<Backend>,
    /// `required_version`s, as written.
    pub required_versions: Vec<String>,
    /// `provider` blocks.
    pub providers: Vec<Provider>,
    /// `variable` blocks.
    pub variables: Vec<Variable>,
    /// Entries of `locals` blocks.
    pub locals: Vec<Named>,
    /// `module` blocks.
    pub modules: Vec<ModuleCall>,
    /// `resource`, `data` and `ephemeral` blocks.
    pub resources: Vec<Resource>,
    /// `output` blocks.
    pub outputs: Vec<Output>,
    /// `data` blocks that read another state.
    pub reads: Vec<StateRead>,
    /// Calls of functions that read files.
    pub files: Vec<FileCall>,
    /// `moved`, `import` and `removed` blocks.
    pub moves: Vec<Move>,
    /// Top-level attributes: what a var file or backend file sets.
    pub values: Vec<Named>,
    /// `tfe_workspace` resources.
    pub workspaces: Vec<WorkspaceBlock>,
    /// Blocks that only Terragrunt reads.
    pub units: Vec<UnitBlock>,
    /// What could not be read.
    pub holes: Vec<FileHole>,
}

/// A resource that makes a workspace of a remote organisation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkspaceBlock {
    /// `name`, `working_directory`, …
    pub args: Vec<Named>,
    /// `count`.
    pub count: Option<Expr>,
    /// `for_each`.
    pub for_each: Option<Expr>,
}

/// A block of a Terragrunt file: `terraform` with a source, `include`, `dependency`, `dependencies`, `remote_state`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnitBlock {
    /// Its type.
    pub kind: String,
    /// Its label, or nothing.
    pub label: String,
    /// Its arguments; nested blocks are objects.
    pub args: Vec<Named>,
    /// 1-based.
    pub line: usize,
}

/// Where a root keeps its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Backend {
    /// `s3`, `local`, …, `cloud`.
    pub kind: String,
    /// Its arguments; nested blocks are objects.
    pub args: Vec<Named>,
    /// 1-based; 0 in JSON.
    pub line: usize,
}

/// A provider's configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provider {
    /// `aws`
    pub name: String,
    /// Its alias.
    pub alias: Option<String>,
    /// It sets something besides alias and version.
    pub configured: bool,
    /// What it refers to.
    pub references: Vec<Reference>,
    /// 1-based; 0 in JSON.
    pub line: usize,
}

/// A variable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its default.
    pub default: Option<Expr>,
    /// Its type, when that has optional attributes.
    pub shape: Option<Expr>,
    /// It says `sensitive = true`.
    pub sensitive: bool,
    /// What its validation refers to.
    pub references: Vec<Reference>,
}

/// A call of a module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModuleCall {
    /// Its name.
    pub name: String,
    /// `source`.
    pub source: Option<Expr>,
    /// What is passed to the module's variables.
    pub args: Vec<Named>,
    /// `count`.
    pub count: Option<Expr>,
    /// `for_each`.
    pub for_each: Option<Expr>,
    /// `depends_on`.
    pub depends_on: Vec<Reference>,
    /// The module's name of a provider to the caller's, `aws.west` form.
    pub providers: Vec<(String, String)>,
    /// 1-based; 0 in JSON.
    pub line: usize,
}

/// A resource or data block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resource {
    /// `aws_x.y` or `data.aws_x.y`.
    pub address: String,
    /// Everything it refers to: arguments, count, depends_on, provisioners, lifecycle.
    pub references: Vec<Reference>,
    /// `provider = aws.west`.
    pub provider: Option<String>,
}

/// An output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Output {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Option<Expr>,
    /// It says `sensitive = true`.
    pub sensitive: bool,
    /// What it refers to, preconditions and depends_on included.
    pub references: Vec<Reference>,
}

/// How another state is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadKind {
    /// `terraform_remote_state`
    RemoteState,
    /// `tfe_outputs`
    TfeOutputs,
}

/// A block that reads another state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StateRead {
    /// Its label.
    pub name: String,
    /// Which block it is.
    pub kind: ReadKind,
    /// `backend`, `config`, `workspace`, …
    pub args: Vec<Named>,
    /// `count`.
    pub count: Option<Expr>,
    /// `for_each`.
    pub for_each: Option<Expr>,
    /// 1-based; 0 in JSON.
    pub line: usize,
}

/// A call that reads a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileCall {
    /// `file`, `templatefile`, `fileset`, …
    pub function: String,
    /// The path; for `fileset` with its pattern behind it.
    pub path: Expr,
    /// The line of the enclosing block.
    pub line: usize,
}

/// A `moved`, `import` or `removed` block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Move {
    /// Which of the three.
    pub kind: String,
    /// The address in `to`, else in `from`.
    pub address: Option<Reference>,
    /// What its other arguments refer to.
    pub references: Vec<Reference>,
}

/// Something in a file that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHole {
    /// 1-based; 0 for the whole file.
    pub line: usize,
    /// A whole sentence.
    pub what: String,
}

/// The deepest nesting that is parsed.
const DEEPEST: usize = 200;

const CONFIGURATION: [&str; 4] = [".tf", ".tofu", ".tf.json", ".tofu.json"];
const VALUES: [&str; 5] = [".tfvars", ".tfvars.json", ".tfbackend", ".backend", "backend.hcl"];

/// Whether the path is a file that Terraform or OpenTofu reads as configuration.
pub fn is_configuration(path: &str) -> bool {
    has_ending(path, &CONFIGURATION)
}

/// Whether only OpenTofu reads the file.
pub fn is_tofu(path: &str) -> bool {
    has_ending(path, &[".tofu", ".tofu.json"])
}

/// Whether the path is a var file or a backend file.
pub fn is_values(path: &str) -> bool {
    has_ending(path, &VALUES)
}

/// Whether the path may be a file that Terragrunt reads, by itself or because a unit names it.
pub fn is_terragrunt(path: &str) -> bool {
    const OTHERS: [&str; 8] = [
        ".tm.hcl",
        ".tftest.hcl",
        ".tofutest.hcl",
        ".pkr.hcl",
        ".tfstack.hcl",
        ".tfcomponent.hcl",
        ".tfdeploy.hcl",
        ".nomad.hcl",
    ];
    has_ending(path, &[".hcl"]) && !has_ending(path, &OTHERS)
}

fn has_ending(path: &str, endings: &[&str]) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let scrap = name.starts_with('.') || name.ends_with('~') || (name.starts_with('#') && name.ends_with('#'));
    !scrap && endings.iter().any(|ending| name.ends_with(ending))
}

/// Whether the file of this path must be parsed for an estate.
pub fn is_wanted(path: &str) -> bool {
    is_configuration(path) || is_values(path) || is_terragrunt(path)
}

/// Parses a file. What cannot be read is in the facts, as holes; there is no error.
pub fn parse(path: &str, bytes: &[u8]) -> FileFacts {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => text,
        _ => return FileFacts::hole(0, "The file is no text: it may be encrypted, and nothing in it is known."),
    };
    if is_too_deep(text) {
        return FileFacts::hole(
            0,
            "Expressions nest deeper here than any that people write; nothing in the file is known.",
        );
    }
    let mut facts = FileFacts::default();
    if path.ends_with(".json") {
        json::read(path, text, &mut facts);
    } else {
        native::read(text, &mut facts);
    }
    facts
}

/// Parsers go one step down their stack per bracket and per sign, and a stack that ends takes the whole program with it.
fn is_too_deep(text: &str) -> bool {
    let (mut brackets, mut signs): (usize, usize) = (0, 0);
    text.bytes().any(|byte| {
        match byte {
            b'(' | b'[' | b'{' => brackets += 1,
            b')' | b']' | b'}' => brackets = brackets.saturating_sub(1),
            _ => {}
        }
        // A ruler of dashes in a comment is short; only expressions repeat these for long.
        signs = match byte {
            b'!' | b'-' | b'?' => signs + 1,
            b' ' | b'\t' => signs,
            _ => 0,
        };
        brackets > DEEPEST || signs > DEEPEST
    })
}

impl FileFacts {
    fn hole(line: usize, what: &str) -> Self {
        Self { holes: vec![FileHole { line, what: what.to_owned() }], ..Self::default() }
    }
}

#[cfg(test)]
mod tests;
