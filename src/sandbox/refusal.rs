//! A refusal of the sandbox in GitHub's error shape. Never carries a secret.

use serde_json::{Value, json};

/// What was not done, and the status and message that GitHub would give for it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{status}: {message}")]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// GitHub's `message`.
    pub message: String,
    /// GitHub's `errors`, often empty.
    pub errors: Vec<Value>,
}

impl Refusal {
    /// A refusal with a status and a message.
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), errors: Vec::new() }
    }
    /// What is not there, or may not be seen.
    pub fn not_found() -> Self {
        Self::new(404, "Not Found")
    }
    /// A token that is known to nobody.
    pub fn bad_credentials() -> Self {
        Self::new(401, "Bad credentials")
    }
    /// Seen, but not allowed to this token.
    pub fn forbidden() -> Self {
        Self::new(403, "Resource not accessible by integration")
    }
    /// A 422 that names the field.
    pub fn field(resource: &str, code: &str, field: &str, message: &str) -> Self {
        Self {
            status: 422,
            message: "Validation Failed".into(),
            errors: vec![json!({"resource": resource, "code": code, "field": field, "message": message})],
        }
    }
    /// A 422 in the shape of bare texts.
    pub fn unprocessable(text: &str) -> Self {
        Self { status: 422, message: "Unprocessable Entity".into(), errors: vec![json!(text)] }
    }
    /// The body that GitHub would send.
    pub fn body(&self) -> Value {
        let mut body = json!({
            "message": self.message,
            "documentation_url": "https://docs.github.com/rest",
            "status": self.status.to_string(),
        });
        if !self.errors.is_empty() {
            body["errors"] = Value::Array(self.errors.clone());
        }
        body
    }
}

/// The result of most things here.
pub type Answer<T> = Result<T, Refusal>;
