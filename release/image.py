"""Writes the image that a Containerfile describes as an archive, without a container program.

Only the last stage is done: what it copies from an earlier one is taken from the folder that --stage-folder gives for it. It
understands what our Containerfile says, and refuses the rest. The archive is an OCI layout, with the manifest.json by which
`docker load` has always read images; the same files and SOURCE_DATE_EPOCH give the same bytes.
"""

import argparse
import datetime
import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
from pathlib import Path

EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
NANOSECONDS = {"s": 10**9, "m": 60 * 10**9}


def main():
    arguments = parsed()
    folder_in_stage, _, folder = arguments.stage_folder.partition("=")
    config, copies = read(Path(arguments.containerfile).read_text())
    layer = layer_of([(folder + source.removeprefix(folder_in_stage), to, owner) for source, to, owner in copies])
    write(arguments.output, layer, config, arguments.architecture, arguments.tag)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ["containerfile", "stage-folder", "architecture", "output"]:
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--tag", required=True, action="append", help="a name of the image; can be given several times")
    return parser.parse_args()


def read(text):
    """The configuration of the last stage, and what it copies: from where, to where, as whose."""
    lines = text.replace("\\\n", " ").splitlines()
    instructions = [line.split(None, 1) for line in lines if line.strip() and not line.startswith("#")]
    begin = max(number for number, (word, _) in enumerate(instructions) if word == "FROM")
    if instructions[begin][1] != "scratch":
        sys.exit(f"the last stage is FROM {instructions[begin][1]}, and only FROM scratch can be written here")
    config, copies = {"Env": [], "ExposedPorts": {}, "Volumes": {}, "Labels": {}}, []
    for word, rest in instructions[begin + 1 :]:
        if word == "COPY":
            copies.append(copied(rest))
        else:
            say(config, word, rest)
    return config, copies


def copied(rest):
    words = rest.split()
    options = dict(word[2:].split("=", 1) for word in words if word.startswith("--"))
    source, to = [word for word in words if not word.startswith("--")]
    owner = tuple(int(number) for number in options.get("chown", "0:0").split(":"))
    return source, to, owner


def say(config, word, rest):
    """Takes one instruction into the configuration."""
    if word in ("ENTRYPOINT", "CMD"):
        config[word.capitalize()] = json.loads(rest)
    elif word in ("USER", "STOPSIGNAL"):
        config[{"USER": "User", "STOPSIGNAL": "StopSignal"}[word]] = rest.strip()
    elif word == "WORKDIR":
        config["WorkingDir"] = rest.strip()
    elif word == "ENV":
        config["Env"].extend(rest.split())
    elif word == "LABEL":
        name, _, value = rest.strip().partition("=")
        config["Labels"][name] = json.loads(value)
    elif word == "EXPOSE":
        config["ExposedPorts"].update({f"{port}/tcp": {} for port in rest.split()})
    elif word == "VOLUME":
        config["Volumes"].update({path: {} for path in json.loads(rest)})
    elif word == "HEALTHCHECK":
        config["Healthcheck"] = health(rest)
    else:
        sys.exit(f"{word} of the Containerfile is not understood here")


def health(rest):
    options, _, command = rest.partition("CMD ")
    found = {"Test": ["CMD", *json.loads(command)]}
    names = {"interval": "Interval", "timeout": "Timeout", "start-period": "StartPeriod"}
    for option in options.split():
        name, value = option.removeprefix("--").split("=")
        if name == "retries":
            found["Retries"] = int(value)
        else:
            found[names[name]] = int(value[:-1]) * NANOSECONDS[value[-1]]
    return found


def layer_of(copies):
    """All that is copied, as one layer; what is copied later owns its path."""
    entries = {}
    for source, to, owner in copies:
        source = Path(source)
        if not source.is_dir():
            sys.exit(f"there is no folder {source} to copy")
        for path in [source, *sorted(source.rglob("*"))]:
            name = (Path(to) / path.relative_to(source)).as_posix().strip("/")
            if name:
                entries[name] = (path, owner)
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w", format=tarfile.PAX_FORMAT) as layer:
        for name in sorted(entries):
            path, (user, group) = entries[name]
            entry = layer.gettarinfo(path, name)
            entry.uid, entry.gid, entry.uname, entry.gname, entry.mtime = user, group, "", "", EPOCH
            with open(path, "rb") if entry.isfile() else io.BytesIO() as content:
                layer.addfile(entry, content)
    return held.getvalue()


def write(output, layer, config, architecture, tags):
    created = datetime.datetime.fromtimestamp(EPOCH, datetime.timezone.utc).isoformat()
    packed = gzip.compress(layer, int(os.environ.get("SERIATIM_PACK_LEVEL", 9)), mtime=0)
    blobs = {}

    def blob(data, kind, **more):
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = data
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data), **more}

    image = {
        "architecture": architecture,
        "os": "linux",
        "created": created,
        "config": {name: value for name, value in config.items() if value},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        "history": [{"created": created, "created_by": "Containerfile"}],
    }
    image = blob(as_json(image), "config.v1+json")
    layer = blob(packed, "layer.v1.tar+gzip")
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": image, "layers": [layer]}
    manifest = as_json(manifest)
    manifests = [blob(manifest, "manifest.v1+json", annotations={
        "io.containerd.image.name": f"docker.io/library/{tag}",
        "org.opencontainers.image.ref.name": tag.partition(":")[2]}) for tag in tags]
    where = [f"blobs/sha256/{part['digest'].removeprefix('sha256:')}" for part in (image, layer)]
    blobs["index.json"] = as_json({"schemaVersion": 2, "manifests": manifests})
    blobs["oci-layout"] = as_json({"imageLayoutVersion": "1.0.0"})
    blobs["manifest.json"] = as_json([{"Config": where[0], "RepoTags": tags, "Layers": where[1:]}])
    with tarfile.open(output, "w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in sorted(blobs.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(data), EPOCH
            archive.addfile(entry, io.BytesIO(data))


def as_json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


if __name__ == "__main__":
    main()
