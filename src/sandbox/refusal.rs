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
    /// Where it is instead.
    pub location: Option<String>,
}

impl Refusal {
    /// A refusal with a status and a message.
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), errors: Vec::new(), location: None }
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
    /// A 422 that names the field. A code of GitHub's own needs no message, and one of its `custom` ones names no field.
    pub fn field(resource: &str, code: &str, field: &str, message: &str) -> Self {
        let mut error = json!({"resource": resource, "code": code});
        if code != "custom" {
            error["field"] = json!(field);
        }
        if matches!(code, "custom" | "unprocessable") {
            error["message"] = json!(message);
        }
        Self { status: 422, message: "Validation Failed".into(), errors: vec![error], location: None }
    }
    /// A field that has another type than GitHub's description says.
    pub fn wrong_type(field: &str, value: &Value, wanted: &str) -> Self {
        Self::new(422, format!("Invalid request.\n\nFor 'properties/{field}', {value} is not {wanted}."))
    }
    /// A name that the repository had once: where it is now, by its id.
    pub fn moved(method: &str, to: &str) -> Self {
        let (status, message) = if method == "GET" { (301, "Moved Permanently") } else { (307, "Temporary Redirect") };
        Self { location: Some(to.to_owned()), ..Self::new(status, message) }
    }
    /// A 422 in the shape of bare texts.
    pub fn unprocessable(text: &str) -> Self {
        Self { status: 422, message: "Unprocessable Entity".into(), errors: vec![json!(text)], location: None }
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
        if let Some(to) = &self.location {
            body["url"] = json!(to);
        }
        body
    }
}

/// The result of most things here.
pub type Answer<T> = Result<T, Refusal>;
