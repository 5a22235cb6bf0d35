//! Kinds of backends that Terraform has given up, in repositories that have not.

use super::{Arguments, Place};

/// The place, as far as the arguments say it; `None` for a kind that never was.
pub(super) fn place(kind: &str, args: &Arguments<'_>, ws: &str) -> Option<Place> {
    let (family, container, location) = match kind {
        "swift" => {
            let container = args.partial("container").or(args.partial("path")).filter(|name| !name.contains('*'));
            ("swift", vec![container], args.defaulted("state_name", "tfstate.tf"))
        }
        "artifactory" => ("artifactory", vec![args.optional("url"), args.known("repo")], args.need("subpath")),
        "etcd" => ("etcd", vec![args.optional("endpoints")], args.need("path")),
        "etcdv3" => ("etcdv3", Vec::new(), format!("{}{ws}", args.or("prefix", ""))),
        "manta" => {
            let object = args.defaulted("object_name", "terraform.tfstate");
            ("manta", vec![args.optional("account")], format!("{}/{object}", args.need("path")))
        }
        "atlas" => {
            let name = args.need("name");
            let (organization, name) = name.split_once('/').unwrap_or(("*", &name));
            let known = |part: &str| Some(part.to_owned()).filter(|part| !part.contains('*'));
            ("remote", vec![known("app.terraform.io"), known(organization)], name.to_owned())
        }
        _ => return None,
    };
    Some(Place { family: family.to_owned(), container, location })
}
