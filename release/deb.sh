#!/usr/bin/env bash
# Makes the Debian package: the binary, the unit, a user, folders, completions. Uploads nothing.
# Needs dpkg-deb, strip and objdump (packages dpkg and binutils), and python3.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# The part of the version behind the dash: counts packages of the same release.
revision=${SERIATIM_DEB_REVISION:-1}
compression=${SERIATIM_DEB_COMPRESSION:-xz}
package="$files/seriatim_$version-${revision}_$(architecture).deb"

main() {
    local binary
    binary=$(binary dynamic)
    root=$(mktemp -d)
    trap 'rm -rf "$root"' EXIT
    chmod 755 "$root"
    programs "$binary"
    settings
    papers
    control
    dpkg-deb --root-owner-group -Z"$compression" --build "$root" "$package" >/dev/null
    made "$package"
}

programs() {
    local shell
    install -d "$root/usr/bin" "$root/usr/share/bash-completion/completions" "$root/usr/share/zsh/vendor-completions" \
        "$root/usr/share/fish/vendor_completions.d"
    strip -o "$root/usr/bin/seriatim" "$1"
    chmod 755 "$root/usr/bin/seriatim"
    "$1" completions bash >"$root/usr/share/bash-completion/completions/seriatim"
    "$1" completions zsh >"$root/usr/share/zsh/vendor-completions/_seriatim"
    "$1" completions fish >"$root/usr/share/fish/vendor_completions.d/seriatim.fish"
}

settings() {
    install -d "$root/etc/seriatim/workflows"
    install -D -m 644 release/deb/seriatim.default "$root/etc/default/seriatim"
    # The package makes the user itself, and programs of packages are in /usr/bin.
    install -d "$root/usr/lib/systemd/system"
    sed -e '/^# Runs seriatim as a service/,/^#   systemctl/d' -e 's,/usr/local/bin/,/usr/bin/,' \
        docs/systemd/seriatim.service >"$root/usr/lib/systemd/system/seriatim.service"
}

papers() {
    local folder="$root/usr/share/doc/seriatim"
    install -d "$folder/workflows"
    install -m 644 README.md CHANGELOG.md docs/installing.md "$folder"
    licences "$folder"
    install -m 644 workflows/*.toml workflows/*.py "$folder/workflows"
    install -m 644 LICENSE "$folder/copyright"
    gzip -9n "$folder/CHANGELOG.md" "$folder/THIRD-PARTY.txt"
}

control() {
    local libc
    install -d "$root/DEBIAN"
    libc=$(objdump -T "$root/usr/bin/seriatim" | grep -o 'GLIBC_[0-9][0-9.]*' | sed 's/GLIBC_//' | sort -Vu | tail -n 1)
    cat >"$root/DEBIAN/control" <<END
Package: seriatim
Version: $version-$revision
Architecture: $(architecture)
Maintainer: The authors of seriatim <seriatim@localhost>
Installed-Size: $(du -sk "$root" | cut -f1)
Depends: libc6 (>= $libc), libgcc-s1, passwd
Section: net
Priority: optional
Description: ordered, durable queue: a daemon, its command line and its web page
 Messages of one workflow are handled one at a time, in order, even when they
 arrive shuffled, fail, or the process dies; everything else runs in parallel.
 Queues are declared in files; handlers are programs in any language, webhooks,
 or clients of Azure Service Bus and Storage Queues.
END
    echo /etc/default/seriatim >"$root/DEBIAN/conffiles"
    install -m 755 release/deb/postinst release/deb/prerm release/deb/postrm "$root/DEBIAN"
    (cd "$root" && find . -type f -not -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
}

main
