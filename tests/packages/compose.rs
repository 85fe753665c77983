//! compose.yaml, as whoever composes reads it.

use std::process::Command;

use serde_json::Value;

use crate::fixture::skip::skip;
use crate::packages::made::PROJECT;

/// The one service of compose.yaml.
pub(crate) struct Service(Value);

impl Service {
    /// Reads the file; `None`, and a line that says so, where nothing reads YAML.
    pub(crate) fn read() -> Option<Service> {
        let program = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
        for python in ["python3", "/usr/bin/python3"] {
            let command =
                Command::new(python).args(["-c", program]).arg(format!("{PROJECT}/compose.yaml")).output();
            let Ok(output) = command else { continue };
            if output.status.success() {
                let read: Value = serde_json::from_slice(&output.stdout).expect("JSON");
                return Some(Service(read["services"]["servicebus"].clone()));
            }
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains("ModuleNotFoundError"), "compose.yaml is no YAML: {said}");
        }
        skip("compose.yaml", "there is no python3 with the module yaml here");
        None
    }

    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let all = self.0["environment"].as_object().expect("variables");
        let text = |value: &Value| value.as_str().expect("a text, so that YAML leaves it alone").to_owned();
        all.iter().map(|(name, value)| (name.clone(), text(value))).collect()
    }

    /// The Config.json that is mounted when nobody names another.
    pub(crate) fn config_on_host(&self) -> String {
        let mount = self.mount(":ro");
        let (_, behind) = mount.split_once(":-").expect("a default");
        format!("{PROJECT}/{}", behind.split_once('}').expect("the end of the variable").0)
    }

    fn mount(&self, ending: &str) -> String {
        let volumes = self.0["volumes"].as_array().expect("volumes").iter();
        let found = volumes.filter_map(Value::as_str).find(|volume| volume.ends_with(ending));
        found.unwrap_or_else(|| panic!("no volume ends with {ending}")).to_owned()
    }
}

#[test]
fn compose_publishes_the_port_that_the_page_names_and_mounts_what_the_image_names() {
    let Some(service) = Service::read() else { return };
    let page = std::fs::read_to_string(format!("{PROJECT}/docs/service-bus.md")).expect("a page");
    let environment = service.environment();
    let value = |name: &str| &environment.iter().find(|(this, _)| this == name).expect("it is set").1;
    assert!(page.contains(&format!("--amqp {} --insecure-network", value("SERIATIM_AMQP"))));
    assert!(page.contains("localhost:5672"), "the page's connection string");
    assert_eq!(service.0["ports"], serde_json::json!(["127.0.0.1:5672:5672"]), "for this machine only");
    assert_eq!(service.mount(":/var/lib/seriatim").split(':').next(), Some("data"));
    assert!(service.mount(":ro").contains(&format!(":{}:", value("SERIATIM_CONFIG_JSON"))));
    for (name, wanted) in [("read_only", serde_json::json!(true)), ("cap_drop", serde_json::json!(["ALL"]))] {
        assert_eq!(service.0[name], wanted);
    }
}
