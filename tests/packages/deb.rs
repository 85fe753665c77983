//! The Debian package: from the file to an ordered handler, as a service, upgraded, removed, purged.

use crate::fixture::skip::skip;
use crate::packages::made;
use crate::packages::papers::commands;
use crate::packages::papers::until;
use crate::packages::room::Room;
use crate::packages::room::Running;
use crate::packages::room::eventually;

/// A queue whose handler writes down what it was given, and fails on what is wet.
const PARCELS: &str = r#"
order = "position"
key = "/parcel"
position = "/step"

[retry]
delays = ["1h"]
then = "hold"

[[handler]]
exec = ["sh", "-c", "grep . | tee -a /var/lib/seriatim/handled | grep -qv wet"]
"#;

/// A Debian with this package installed in it.
fn installed() -> Option<Room> {
    let room = Room::debian()?;
    let package = made::deb(room.folder(), 1);
    let name = package.file_name().expect("a file").to_string_lossy().into_owned();
    place(&room, &package);
    room.shell(&format!("dpkg -i /tmp/{name}"));
    Some(room)
}

/// Puts a package into the room, where somebody would have downloaded it to.
fn place(room: &Room, package: &std::path::Path) {
    let to = room.folder().join("root/tmp").join(package.file_name().expect("a file"));
    std::fs::rename(package, to).expect("the same disk");
}

/// Starts what the installed unit starts, as the user it names.
fn service(room: &Room) -> Running {
    let unit = room.shell("cat /usr/lib/systemd/system/seriatim.service");
    let said = |name: &str| unit.lines().find_map(|line| line.strip_prefix(name)).expect("the unit says it");
    let mut command = room.debian_command(&format!("{}:{}", said("User="), said("Group=")));
    let running = Running::start(command.args(said("ExecStart=").split(' ')));
    room.shell(&until("seriatim queues"));
    running
}

/// Sends steps of a parcel, the wet one last but one, and waits until that has failed.
fn send_and_fail(room: &Room) {
    for step in [2, 1, 4] {
        room.shell(&format!("seriatim send parcels '{{\"parcel\": \"p-1\", \"step\": {step}}}'"));
    }
    room.shell("seriatim send parcels '{\"parcel\": \"p-1\", \"step\": 3, \"state\": \"wet\"}'");
    eventually("the wet parcel fails", || {
        room.shell("seriatim blocked").contains("retry (1x)").then_some(())
    });
}

/// Daemon, first step, second step, a failure, and behind it the fourth step, which waits.
fn expect_third_step_in_the_way(room: &Room) {
    let handled = room.shell("cat /var/lib/seriatim/handled");
    let steps: Vec<&str> =
        handled.lines().map(|line| line.split_once("step\": ").expect("a step").1).collect();
    assert_eq!(steps, ["1}", "2}", "3, \"state\": \"wet\"}"], "in order, and the fourth waits");
    let blocked = room.shell("seriatim blocked");
    assert!(blocked.contains("parcels/p-1") && blocked.contains("retry (1x)"), "{blocked}");
}

#[test]
fn the_readme_leads_from_the_package_to_an_ordered_handler_and_past_a_kill() {
    let Some(room) = Room::debian() else { return };
    place(&room, &made::deb(room.folder(), 1));
    let wet = until("grep -q wet handled");
    let typed = commands("README.md").replace("$ cat handled", "cat handled");
    let typed = typed.replace("cat handled\n", &format!("{wet}cat handled\n"));
    assert!(typed.contains("kill -9") && typed.contains("dpkg -i"), "the page tells how: {typed}");
    let blocked = until("seriatim blocked | grep -q 'parcels/p-1 .*retry'");
    let script =
        format!("cd /tmp\nset -m\n{typed}{blocked}seriatim blocked\nkill -9 %2 2>/dev/null || kill -9 %1\n");
    let output =
        room.debian_command("root:root").args(["bash", "-ec", &script]).output().expect("bash is there");
    let printed = crate::packages::room::succeeded(&script, output);
    let steps: Vec<&str> = printed.lines().filter(|line| line.starts_with("{\"parcel")).collect();
    assert!(steps[0].contains("\"step\": 1") && steps[1].contains("\"step\": 2"), "{printed}");
    assert!(steps[2].contains("wet") && !printed.contains("\"step\": 4"), "the fourth waits: {printed}");
    assert!(printed.lines().last().expect("it ends").contains("p-1"), "{printed}");
}

#[test]
fn the_service_of_the_package_runs_without_rights_and_goes_on_after_kill_9() {
    let Some(room) = installed() else { return };
    room.shell(&format!("cat >/etc/seriatim/workflows/parcels.toml <<'END'{PARCELS}END"));
    let daemon = service(&room);
    let user = room.shell("id -u seriatim").trim().to_owned();
    assert_ne!(user, "0");
    assert_eq!(
        daemon.status("Uid").split('\t').collect::<Vec<_>>(),
        [&user; 4],
        "all four are the package's user"
    );
    send_and_fail(&room);
    expect_third_step_in_the_way(&room);
    daemon.kill();
    let _again = service(&room);
    expect_third_step_in_the_way(&room);
}

#[test]
fn an_upgrade_keeps_data_and_settings_and_only_a_purge_takes_the_data() {
    let Some(room) = installed() else { return };
    room.shell(&format!("cat >/etc/seriatim/workflows/parcels.toml <<'END'{PARCELS}END"));
    room.shell("echo SERIATIM_LOG=debug >>/etc/default/seriatim");
    let daemon = service(&room);
    send_and_fail(&room);
    daemon.kill();
    let store = "stat -c '%U %a %i' /var/lib/seriatim /var/lib/seriatim/seriatim.redb";
    let (before, unit) = (room.shell(store), room.shell("id seriatim"));

    place(&room, &made::deb(room.folder(), 2));
    let said = room.shell("dpkg -i /tmp/seriatim_*-2_*.deb");
    room.shell("zcat /usr/share/doc/seriatim/THIRD-PARTY.txt.gz | grep -q '^redb '");
    assert!(said.contains("over (") && room.shell("dpkg -s seriatim").contains("-2\n"), "{said}");
    assert_eq!((room.shell(store), room.shell("id seriatim")), (before.clone(), unit));
    assert!(room.shell("cat /etc/default/seriatim").ends_with("SERIATIM_LOG=debug\n"), "settings are kept");
    let daemon = service(&room);
    expect_third_step_in_the_way(&room);
    daemon.kill();

    room.shell("dpkg --remove seriatim");
    assert_eq!(room.shell(store), before, "a removal leaves the data");
    room.shell("test ! -e /usr/bin/seriatim && test -e /etc/default/seriatim");
    room.shell("dpkg --purge seriatim");
    room.shell("test ! -e /var/lib/seriatim && test ! -e /etc/default/seriatim && ! id seriatim 2>/dev/null");
    room.shell("test -e /etc/seriatim/workflows/parcels.toml");
}

#[test]
fn an_upgrade_whose_service_does_not_start_again_is_installed_and_says_so() {
    let Some(room) = installed() else { return };
    room.shell("mkdir -p /run/systemd/system; rm -f /usr/bin/systemctl");
    room.shell("printf '#!/bin/sh\\ntest \"$1\" != try-restart\\n' >/usr/bin/systemctl; chmod 755 /usr/bin/systemctl");
    place(&room, &made::deb(room.folder(), 2));
    let said = room.shell("dpkg -i /tmp/seriatim_*-2_*.deb 2>&1");
    assert!(said.contains("journalctl -u seriatim says why"), "{said}");
    assert!(room.shell("dpkg -s seriatim").contains("Status: install ok installed"), "{said}");
}

#[test]
fn the_units_user_is_one_whom_files_and_sudo_can_name_and_made_as_the_package_makes_it() {
    let unit = include_str!("../../docs/systemd/seriatim.service");
    let useradd = |line: &str| line.split_once("useradd ").map(|(_, arguments)| arguments.to_owned());
    let of_package = include_str!("../../release/deb/postinst").lines().find_map(useradd);
    assert_eq!(unit.lines().find_map(useradd), of_package);
    assert!(
        unit.contains("\nUser=seriatim\n") && !unit.contains("DynamicUser"),
        "it is there while nothing runs"
    );
    assert!(unit.contains("\nStateDirectoryMode=0700\n"), "as the package makes the folder");
}

#[test]
fn the_unit_of_the_package_is_taken_by_systemd_and_leaves_little_exposed() {
    let Some(room) = installed() else { return };
    if !std::path::Path::new("/usr/bin/systemd-analyze").exists() {
        return skip("unit of the Debian package", "there is no systemd-analyze here");
    }
    room.shell("systemd-analyze verify --man=no /usr/lib/systemd/system/seriatim.service 2>&1 | tee /tmp/said; test ! -s /tmp/said");
    // In tenths: below 3.0 systemd calls a service well protected.
    room.shell(
        "systemd-analyze security --offline=true --threshold=30 /usr/lib/systemd/system/seriatim.service",
    );
}
