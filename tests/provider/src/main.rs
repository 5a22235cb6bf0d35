//! A provider for tests: a folder stands for the cloud, a file in it for each resource. Everything it does can be told to
//! fail or to wait for a file, and whoever edits the folder makes drift. It talks to nothing else.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tf_provider::schema::{Attribute, AttributeConstraint, AttributeType, Block, Description, Schema};
use tf_provider::value::{Value, ValueEmpty};
use tf_provider::{AttributePath, DataSource, Diagnostics, Provider, Resource, map, serve};

/// The folder, known once the provider is configured.
#[derive(Clone, Debug, Default)]
struct Cloud(Arc<OnceLock<PathBuf>>);

/// What the folder keeps of a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    value: Option<String>,
    secret: Option<String>,
}

impl Cloud {
    fn file(&self, name: &str, ending: &str) -> PathBuf {
        self.0.get().cloned().unwrap_or_default().join(format!("{name}.{ending}"))
    }

    fn read(&self, name: &str) -> Option<Kept> {
        serde_json::from_slice(&std::fs::read(self.file(name, "json")).ok()?).ok()
    }

    fn write(&self, thing: &Thing) -> anyhow::Result<()> {
        let kept = Kept { value: text(&thing.value), secret: text(&thing.secret) };
        Ok(std::fs::write(self.file(&thing.name(), "json"), serde_json::to_vec(&kept)?)?)
    }

    /// Fails if the resource says so, then waits for the file that it names; `NAME.waiting` is there meanwhile.
    async fn work(&self, errors: &mut Diagnostics, thing: &Thing, what: &str) -> Option<()> {
        if let Some(path) = text(&thing.wait_for) {
            let waiting = self.file(&thing.name(), "waiting");
            let _ = std::fs::write(&waiting, what);
            while !std::path::Path::new(&path).exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let _ = std::fs::remove_file(&waiting);
        }
        if text(&thing.fails).as_deref() == Some(what) {
            // As careless as real ones are: it quotes what it was given.
            let secret = text(&thing.secret).unwrap_or_default();
            errors.root_error(
                format!("the test cloud refuses to {what}"),
                format!("403 for {}, sent with {secret}", thing.name()),
            );
            return None;
        }
        Some(())
    }
}

fn text(value: &Value<String>) -> Option<String> {
    match value {
        Value::Value(text) => Some(text.clone()),
        _ => None,
    }
}

fn value(text: Option<String>) -> Value<String> {
    text.map_or(Value::Null, Value::Value)
}

/// `test_thing`, the resource and the data source.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Thing {
    id: Value<String>,
    name: Value<String>,
    value: Value<String>,
    secret: Value<String>,
    token: Value<String>,
    wait_for: Value<String>,
    fails: Value<String>,
}

impl Thing {
    fn name(&self) -> String {
        text(&self.name).unwrap_or_default()
    }

    fn made(mut self) -> Self {
        self.id = Value::Value(format!("test-{}", self.name()));
        self.token = Value::Value(format!("made-token-of-{}", self.name()));
        self
    }

    fn unmade(mut self) -> Self {
        self.id = Value::Unknown;
        self.token = Value::Unknown;
        self
    }
}

fn attribute(constraint: AttributeConstraint, sensitive: Sensitive) -> Attribute {
    Attribute {
        attr_type: AttributeType::String,
        description: Description::plain(""),
        constraint,
        sensitive: sensitive == Sensitive::Yes,
        ..Default::default()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sensitive {
    Yes,
    No,
}

fn schema(attributes: HashMap<String, Attribute>) -> Option<Schema> {
    let block = Block { version: 1, description: Description::plain(""), attributes, ..Default::default() };
    Some(Schema { version: 1, block })
}

struct ThingResource(Cloud);

impl ThingResource {
    fn plan(errors: &mut Diagnostics, thing: &Thing) -> Option<()> {
        if text(&thing.fails).as_deref() != Some("plan") {
            return Some(());
        }
        errors.error("the test cloud refuses to plan", "this value is not on offer", AttributePath::new("value"));
        None
    }
}

#[async_trait]
impl Resource for ThingResource {
    type State<'a> = Value<Thing>;
    type PrivateState<'a> = ValueEmpty;
    type ProviderMetaState<'a> = ValueEmpty;

    fn schema(&self, _: &mut Diagnostics) -> Option<Schema> {
        use AttributeConstraint::{Computed, Optional, Required};
        schema(map! {
            "id" => attribute(Computed, Sensitive::No),
            "name" => attribute(Required, Sensitive::No),
            "value" => attribute(Optional, Sensitive::No),
            "secret" => attribute(Optional, Sensitive::Yes),
            "token" => attribute(Computed, Sensitive::Yes),
            "wait_for" => attribute(Optional, Sensitive::No),
            "fails" => attribute(Optional, Sensitive::No),
        })
    }

    async fn validate<'a>(&self, _: &mut Diagnostics, _: Value<Thing>) -> Option<()> {
        Some(())
    }

    async fn read<'a>(
        &self,
        errors: &mut Diagnostics,
        state: Value<Thing>,
        private: ValueEmpty,
        _: ValueEmpty,
    ) -> Option<(Value<Thing>, ValueEmpty)> {
        let Value::Value(mut thing) = state else { return Some((state, private)) };
        if text(&thing.fails).as_deref() == Some("read") {
            errors.root_error("the test cloud refuses to read", "500");
            return None;
        }
        let Some(kept) = self.0.read(&thing.name()) else { return Some((Value::Null, private)) };
        thing.value = value(kept.value);
        thing.secret = value(kept.secret);
        Some((Value::Value(thing), private))
    }

    async fn plan_create<'a>(
        &self,
        errors: &mut Diagnostics,
        proposed: Value<Thing>,
        _: Value<Thing>,
        _: ValueEmpty,
    ) -> Option<(Value<Thing>, ValueEmpty)> {
        let Value::Value(thing) = proposed else { return Some((proposed, ValueEmpty::default())) };
        Self::plan(errors, &thing)?;
        Some((Value::Value(thing.unmade()), ValueEmpty::default()))
    }

    async fn plan_update<'a>(
        &self,
        errors: &mut Diagnostics,
        prior: Value<Thing>,
        proposed: Value<Thing>,
        _: Value<Thing>,
        private: ValueEmpty,
        _: ValueEmpty,
    ) -> Option<(Value<Thing>, ValueEmpty, Vec<AttributePath>)> {
        let (Value::Value(old), Value::Value(new)) = (&prior, &proposed) else {
            return Some((proposed, private, Vec::new()));
        };
        Self::plan(errors, new)?;
        if text(&new.name).is_some() && old.name() == new.name() {
            return Some((proposed, private, Vec::new()));
        }
        Some((Value::Value(new.clone().unmade()), private, vec![AttributePath::new("name")]))
    }

    async fn plan_destroy<'a>(
        &self,
        _: &mut Diagnostics,
        _: Value<Thing>,
        private: ValueEmpty,
        _: ValueEmpty,
    ) -> Option<ValueEmpty> {
        Some(private)
    }

    async fn create<'a>(
        &self,
        errors: &mut Diagnostics,
        planned: Value<Thing>,
        _: Value<Thing>,
        private: ValueEmpty,
        _: ValueEmpty,
    ) -> Option<(Value<Thing>, ValueEmpty)> {
        let Value::Value(thing) = planned else { return Some((planned, private)) };
        self.0.work(errors, &thing, "create").await?;
        self.0.write(&thing).map_err(|error| errors.root_error("create", error.to_string())).ok()?;
        Some((Value::Value(thing.made()), private))
    }

    async fn update<'a>(
        &self,
        errors: &mut Diagnostics,
        _: Value<Thing>,
        planned: Value<Thing>,
        _: Value<Thing>,
        private: ValueEmpty,
        _: ValueEmpty,
    ) -> Option<(Value<Thing>, ValueEmpty)> {
        let Value::Value(thing) = planned else { return Some((planned, private)) };
        self.0.work(errors, &thing, "update").await?;
        self.0.write(&thing).map_err(|error| errors.root_error("update", error.to_string())).ok()?;
        Some((Value::Value(thing), private))
    }

    async fn destroy<'a>(&self, errors: &mut Diagnostics, state: Value<Thing>, _: ValueEmpty, _: ValueEmpty) -> Option<()> {
        let Value::Value(thing) = state else { return Some(()) };
        self.0.work(errors, &thing, "delete").await?;
        let _ = std::fs::remove_file(self.0.file(&thing.name(), "json"));
        Some(())
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Found {
    name: Value<String>,
    value: Value<String>,
    secret: Value<String>,
}

struct ThingData(Cloud);

#[async_trait]
impl DataSource for ThingData {
    type State<'a> = Value<Found>;
    type ProviderMetaState<'a> = ValueEmpty;

    fn schema(&self, _: &mut Diagnostics) -> Option<Schema> {
        use AttributeConstraint::{Computed, Required};
        schema(map! {
            "name" => attribute(Required, Sensitive::No),
            "value" => attribute(Computed, Sensitive::No),
            "secret" => attribute(Computed, Sensitive::Yes),
        })
    }

    async fn validate<'a>(&self, _: &mut Diagnostics, _: Value<Found>) -> Option<()> {
        Some(())
    }

    async fn read<'a>(&self, errors: &mut Diagnostics, wanted: Value<Found>, _: ValueEmpty) -> Option<Value<Found>> {
        let Value::Value(mut found) = wanted else { return Some(wanted) };
        let name = text(&found.name).unwrap_or_default();
        let Some(kept) = self.0.read(&name) else {
            errors.root_error("there is no such thing", name);
            return None;
        };
        found.value = value(kept.value);
        found.secret = value(kept.secret);
        Some(Value::Value(found))
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Settings {
    folder: Value<String>,
}

#[derive(Default)]
struct TestProvider(Cloud);

#[async_trait]
impl Provider for TestProvider {
    type Config<'a> = Value<Settings>;
    type MetaState<'a> = ValueEmpty;

    fn schema(&self, _: &mut Diagnostics) -> Option<Schema> {
        schema(map! { "folder" => attribute(AttributeConstraint::Required, Sensitive::No) })
    }

    async fn validate<'a>(&self, _: &mut Diagnostics, _: Value<Settings>) -> Option<()> {
        Some(())
    }

    async fn configure<'a>(&self, errors: &mut Diagnostics, _: String, settings: Value<Settings>) -> Option<()> {
        let folder = match settings {
            Value::Value(settings) => text(&settings.folder).unwrap_or_default(),
            _ => String::new(),
        };
        if let Err(error) = std::fs::create_dir_all(&folder) {
            errors.root_error("the folder cannot be used", error.to_string());
            return None;
        }
        let _ = self.0.0.set(folder.into());
        Some(())
    }

    fn get_resources(&self, _: &mut Diagnostics) -> Option<HashMap<String, Box<dyn tf_provider::DynamicResource>>> {
        Some(map! { "thing" => ThingResource(self.0.clone()) })
    }

    fn get_data_sources(&self, _: &mut Diagnostics) -> Option<HashMap<String, Box<dyn tf_provider::DynamicDataSource>>> {
        Some(map! { "thing" => ThingData(self.0.clone()) })
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    serve("test", TestProvider::default()).await
}
