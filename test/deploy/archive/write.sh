#!/usr/bin/env bash
# Writes the files beside it: a package archive like Debian's with one package, signed with a key that is then deleted.
# Needs gpg and dpkg-deb. No test depends on a certain key.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GNUPGHOME="$work/gnupg"
mkdir -m 700 "$GNUPGHOME"
# A past date, because a machine whose clock is behind would refuse the signature.
sign() { gpg --batch --quiet --faked-system-time 20240101T000000! "$@"; }

for name in archive other; do
  sign --passphrase '' --quick-generate-key "test $name" ed25519 sign never
done
gpg --armor --export 'test archive' > keyring.asc
gpg --armor --export 'test other' > other-keyring.asc

package="$work/package"
mkdir -p "$package/DEBIAN" "$package/usr/sbin"
printf '#!/bin/sh\necho "nats-server: v2.15.1"\n' > "$package/usr/sbin/nats-server"
chmod 755 "$package/usr/sbin/nats-server"
printf 'Package: nats-server\nVersion: 2.15.1-1\nArchitecture: all\nMaintainer: test\nDescription: test\n' > "$package/DEBIAN/control"
dpkg-deb --root-owner-group -Zgzip --build "$package" nats-server.deb > /dev/null

{
  cat "$package/DEBIAN/control"
  echo "Filename: pool/nats-server.deb"
  echo "Size: $(stat -c %s nats-server.deb)"
  echo "SHA256: $(sha256sum nats-server.deb | cut -d' ' -f1)"
} > Packages

architectures="amd64 arm64 armhf i386 ppc64el riscv64 s390x"
{
  printf 'Origin: Debian\nLabel: Debian\nSuite: testing\nCodename: forky\nDate: %s\n' 'Mon, 01 Jan 2024 00:00:00 UTC'
  printf 'Architectures: %s\nComponents: main\nSHA256:\n' "$architectures"
  for architecture in $architectures; do
    echo " $(sha256sum Packages | cut -d' ' -f1) $(stat -c %s Packages) main/binary-$architecture/Packages"
  done
} > "$work/Release"
sign --local-user 'test archive' --digest-algo SHA512 --clearsign --output "$work/InRelease" "$work/Release"
mv "$work/InRelease" InRelease
