#!/usr/bin/env bash
# Makes the image of a container, without any container program: an archive for `docker load`, `podman load` or `skopeo copy`.
# With --root FOLDER it only fills the folder that the Containerfile copies. Uploads nothing. Needs python3, dpkg, strip and a C
# library to link statically with (packages dpkg, binutils and libc6-dev).
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

image="$files/seriatim-$version-image-$(architecture).tar"

main() {
    local root
    if [[ ${1:-} == --root ]]; then
        fill "${2:?--root needs a folder}"
        return
    fi
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    root="$work/image"
    fill "$root"
    python3 release/image.py --containerfile Containerfile --stage-folder "/image=$root" \
        --tag "seriatim:$version" --tag seriatim:latest --architecture "$(architecture)" --output "$image"
    made "$image"
}

# Fills a folder with all that the image holds.
fill() {
    local root=$1 binary
    binary=$(binary static)
    mkdir -p "$root"/{etc/seriatim/workflows,tmp,usr/bin,usr/share/doc/seriatim,var/lib/seriatim}
    chmod 1777 "$root/tmp"
    chmod 700 "$root/var/lib/seriatim"
    strip -o "$root/usr/bin/seriatim" "$binary"
    chmod 755 "$root/usr/bin/seriatim"
    echo 'seriatim:x:65532:65532::/var/lib/seriatim:/nonexistent' >"$root/etc/passwd"
    echo 'seriatim:x:65532:' >"$root/etc/group"
    # Names are looked up in /etc/hosts, then asked of the servers of /etc/resolv.conf; both come from who runs the container.
    echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
    libraries "$binary" "$root"
    licences "$root/usr/share/doc/seriatim"
}

# A binary that is not static, such as one of a test, brings its libraries.
libraries() {
    local library
    for library in $(ldd "$1" 2>/dev/null | grep -o '/[^ ]*'); do
        if [[ ${SERIATIM_BINARY:-} == "" ]]; then
            echo "the binary needs $library, and an image has no libraries: it was to be linked statically" >&2
            return 1
        fi
        install -D -m 755 "$library" "$2$library"
    done
}

main "$@"
