#!/bin/sh
# Installs dns11, upgrades it or removes it: `install.sh --help`. It downloads a release, compares it with the hashes of that
# release before anything of it is run, and installs the Debian package, or an archive below /usr/local where there is no dpkg.
# It starts nothing. An upgrade replaces a running service without losing a query.
#
# All is in functions and the last line calls them, so that a script that was cut off while it was downloaded does nothing.
set -eu

REPOSITORY=https://github.com/dns11/dns11
SUMS_BYTES_MAX=65536
PREFIX=/usr/local
HOME_FOLDER=$PREFIX/lib/dns11
SETTINGS=/etc/dns11/dns11.yaml
# What is to be closed at the next boot.
STATE=/var/lib/dns11
# Files of the archive, written by this script.
LIST=$HOME_FOLDER/installed-files

work=
url=
version=
method=
action=install
purge=
swapped=

usage() {
  cat <<END
Usage: sh install.sh [--version VERSION] [--method deb|archive] [--url URL]
       sh install.sh --remove [--purge]

Installs or upgrades dns11, or removes it. Nothing is started.

  --version VERSION  this release (default: the newest)
  --method METHOD    deb: the Debian package (default where dpkg is)
                     archive: files below $PREFIX (default elsewhere)
  --url URL          the folder of the release, in place of $REPOSITORY
  --remove           stops dns11 and removes it; settings stay
  --purge            with --remove: removes the settings, too
END
}

say() {
  printf 'install: %s\n' "$*"
}

fail() {
  printf 'install: %s\n' "$*" >&2
  exit 1
}

has() {
  command -v "$1" >/dev/null 2>&1
}

# busybox has a command of this name, which is another program.
has_dpkg() {
  dpkg --print-architecture >/dev/null 2>&1
}

# Whatever has happened, no download stays, and an archive that was not installed completely is undone.
finish() {
  code=$?
  trap - EXIT
  if [ -n "$swapped" ]; then undo; fi
  rm -rf "$HOME_FOLDER.new"
  if [ -n "$work" ]; then rm -rf "$work"; fi
  exit "$code"
}

# What an installation that did not end has put in place goes, and what was there before is put back.
undo() {
  if [ -e "$LIST" ]; then remove_listed; fi
  if [ -d "$HOME_FOLDER.previous" ]; then
    copy_files "$HOME_FOLDER.previous/tree" || printf 'install: not all files of the earlier version could be put back\n' >&2
    mv "$HOME_FOLDER.previous" "$HOME_FOLDER"
    printf 'install: the earlier version is in place again\n' >&2
  fi
}

read_arguments() {
  while [ $# -gt 0 ]; do
    case $1 in
      --version | --method | --url)
        if [ -z "${2:-}" ]; then fail "$1 needs a value: install.sh --help"; fi
        case $1 in
          --version) version=${2#v} ;;
          --method) method=$2 ;;
          --url) url=${2%/} ;;
        esac
        shift
        ;;
      --remove) action=remove ;;
      --purge) purge=yes ;;
      -h | --help)
        usage
        exit 0
        ;;
      *) fail "unknown argument \"$1\": install.sh --help" ;;
    esac
    shift
  done
  case $method in '' | deb | archive) ;; *) fail "no method \"$method\": it is deb or archive" ;; esac
  case $version in *[!0-9A-Za-z.~+-]*) fail "\"$version\" is no version; an example is 0.1.0" ;; esac
  if [ -n "$purge" ] && [ "$action" != remove ]; then fail '--purge goes with --remove'; fi
  if [ -z "$url" ]; then
    url=$REPOSITORY/releases/latest/download
    if [ -n "$version" ]; then url=$REPOSITORY/releases/download/v$version; fi
  fi
  # Hashes that travel unprotected protect nothing.
  case $url in
    *@*) fail "$url names a user: leave that out" ;;
    https://* | http://127.0.0.1[:/]* | http://localhost[:/]* | "http://[::1]"[:/]*) ;;
    *) fail "$url is not safe: use https (http only from this machine)" ;;
  esac
}

check_system() {
  [ "$(uname -s)" = Linux ] || fail "dns11 runs on Linux, and this is $(uname -s)"
  [ "$(id -u)" -eq 0 ] || fail 'this needs root: sudo sh install.sh'
  if [ -z "$method" ]; then
    method=archive
    if has_dpkg; then method=deb; fi
  fi
  if [ "$method" = deb ]; then
    has_dpkg || fail 'there is no dpkg here: --method archive'
    arch=$(dpkg --print-architecture)
  else
    case $(uname -m) in
      x86_64) arch=amd64 ;;
      aarch64) arch=arm64 ;;
      *) arch=$(uname -m) ;;
    esac
  fi
  case $arch in amd64 | arm64) ;; *) fail "there is no dns11 for $arch, only for amd64 and arm64" ;; esac
}

deb_version() {
  if has_dpkg; then dpkg-query --show --showformat '${db:Status-Status} ${Version}' dns11 2>/dev/null | sed -n 's/^installed //p'; fi
}

# A package that was removed, and not purged.
has_deb_rest() {
  has_dpkg && [ "$(dpkg-query --show --showformat '${db:Status-Status}' dns11 2>/dev/null)" = config-files ]
}

archive_version() {
  if [ -x "$PREFIX/bin/dns11" ] && [ -e "$LIST" ]; then "$PREFIX/bin/dns11" --version 2>/dev/null || echo unknown; fi
}

# download NAME FILE
download() {
  if has curl; then
    set -- "$1" "$2" --fail --silent --show-error --location --retry 2 --connect-timeout 30 --speed-limit 1000 --speed-time 60
    case $url in https:*) set -- "$@" --proto '=https' --tlsv1.2 ;; esac
    target=$2
    file=$1
    shift 2
    curl "$@" --output "$target" "$url/$file" || fail "cannot download $url/$file; nothing was installed"
  elif has wget; then
    # That of busybox downloads even where it cannot check the certificate.
    case $url in https:*) if wget --help 2>&1 | grep -q BusyBox; then fail 'the wget of busybox does not check certificates: install curl'; fi ;; esac
    wget -q -O "$2" "$url/$1" || fail "cannot download $url/$1; nothing was installed"
  else
    fail 'curl or wget is needed for downloading'
  fi
}

# Sets `name` to the file for this machine, and `release` to its version, from the hashes of the release.
choose_file() {
  case $method in
    deb) pattern="dns11_[0-9A-Za-z.~+-]*_$arch\.deb" ;;
    archive) pattern="dns11-[0-9A-Za-z.~+-]*-linux-$arch\.tar\.gz" ;;
  esac
  [ "$(wc -c <"$work/SHA256SUMS")" -le "$SUMS_BYTES_MAX" ] || fail "$url/SHA256SUMS is larger than the sums of a release"
  grep -E "^[0-9a-f]{64}  $pattern\$" "$work/SHA256SUMS" >"$work/sum" ||
    fail "$url/SHA256SUMS has no hash for a file of method $method for $arch; nothing was installed"
  [ "$(wc -l <"$work/sum")" -eq 1 ] || fail "$url/SHA256SUMS has several files for $arch; nothing was installed"
  name=$(cut -c67- "$work/sum")
  case $method in
    deb) release=${name#dns11_} release=${release%_"$arch".deb} ;;
    archive) release=${name#dns11-} release=${release%-linux-"$arch".tar.gz} ;;
  esac
  if [ -n "$version" ] && [ "$version" != "$release" ]; then fail "$url has dns11 $release, not $version; nothing was installed"; fi
}

verify() {
  found=$(sha256sum "$work/$name" | cut -d' ' -f1)
  wanted=$(cut -d' ' -f1 "$work/sum")
  [ "$found" = "$wanted" ] ||
    fail "$name is not what the release has: its hash is $found, and SHA256SUMS says $wanted; nothing was installed. Try again; if it stays, report it: $REPOSITORY/security"
}

install_deb() {
  chmod 755 "$work"
  if has apt-get; then
    set -- -qq -y --no-install-recommends -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold
    if [ -n "$version" ]; then set -- "$@" --allow-downgrades; fi
    DEBIAN_FRONTEND=noninteractive apt-get "$@" install "$work/$name" || fail "apt-get could not install $name; dpkg --audit shows the state of packages"
  else
    dpkg --force-confdef --force-confold --install "$work/$name" || fail "dpkg could not install $name; dpkg --audit shows the state of packages"
  fi
}

# Copies what is outside of the home folder from there to its places.
copy_files() {
  (cd "$1" && find . ! -type d) | sed 's/^\.//' | while read -r path; do
    mkdir -p "${path%/*}"
    # By a new name first: a file that is in use stays as it is for who has it open.
    cp -p "$1$path" "$path.dns11-new"
    mv "$path.dns11-new" "$path"
  done
}

install_archive() {
  old=$(archive_version)
  mkdir "$work/tree"
  tar -xzf "$work/$name" -C "$work/tree" || fail "cannot unpack $name; nothing was installed"
  mv "$work/tree$SETTINGS" "$work/settings"
  {
    (cd "$work/tree/usr" && find . -type d) | sed 's,^\.,/usr,' | while read -r path; do if [ ! -d "$path" ]; then echo "$path"; fi; done
    if [ -n "$old" ]; then cat "$HOME_FOLDER/created-folders"; fi
  } >"$work/created-folders"
  rm -rf "$HOME_FOLDER.new"
  mkdir -p "$HOME_FOLDER.new"
  cp "$work/created-folders" "$HOME_FOLDER.new/"
  cp -R "$work/tree$HOME_FOLDER/." "$HOME_FOLDER.new/"
  rm -rf "$work/tree$HOME_FOLDER" "$work/tree/etc"
  # Kept, so that an upgrade that fails can be undone.
  cp -R "$work/tree" "$HOME_FOLDER.new/tree"
  (cd "$work/tree/usr" && find . ! -type d) | sed 's,^\.,/usr,' >"$HOME_FOLDER.new/installed-files"
  : >"$HOME_FOLDER.new/incomplete"
  "$HOME_FOLDER.new/bin/node" "$HOME_FOLDER.new/dist/cmd/dns11.js" --version >/dev/null ||
    fail 'dns11 does not start on this system: it needs glibc 2.28 or later, and libstdc++; nothing was installed'
  rm -rf "$HOME_FOLDER.previous"
  # From here on `finish` undoes what is not complete, and so does the next run.
  if [ -d "$HOME_FOLDER" ]; then mv "$HOME_FOLDER" "$HOME_FOLDER.previous"; fi
  swapped=yes
  mv "$HOME_FOLDER.new" "$HOME_FOLDER"
  copy_files "$HOME_FOLDER/tree"
  "$PREFIX/bin/dns11" --version >/dev/null || fail 'dns11 does not start from its place'
  if [ -e "$HOME_FOLDER.previous/installed-files" ]; then
    # What the earlier version had, and this one has not.
    grep -Fxv -f "$LIST" "$HOME_FOLDER.previous/installed-files" | while read -r path; do rm -f "$path"; done
  fi
  if [ ! -e "$SETTINGS" ]; then
    mkdir -p "${SETTINGS%/*}"
    cp "$work/settings" "$SETTINGS"
  fi
  swapped=
  "$HOME_FOLDER/scripts/postinst" configure "$old"
  rm "$HOME_FOLDER/incomplete"
  rm -rf "$HOME_FOLDER.previous"
}

# An earlier run may have been killed between two steps.
restore_interrupted() {
  if [ -e "$HOME_FOLDER/incomplete" ] || { [ ! -d "$HOME_FOLDER" ] && [ -d "$HOME_FOLDER.previous" ]; }; then
    say 'an earlier run did not end, and is undone'
    undo
  fi
}

install() {
  check_system
  has sha256sum || fail 'sha256sum is needed for comparing hashes'
  restore_interrupted
  deb=$(deb_version)
  archive=$(archive_version)
  if [ "$method" = archive ] && [ -n "$deb" ]; then fail "dns11 $deb is installed as a Debian package: install that, or remove it first (--remove)"; fi
  if [ "$method" = deb ] && [ -n "$archive" ]; then fail "dns11 $archive is installed in $PREFIX: --method archive, or remove it first (--remove)"; fi
  download SHA256SUMS "$work/SHA256SUMS"
  choose_file
  before=${deb:-$archive}
  if [ "$before" = "$release" ]; then
    say "dns11 $release is installed already"
    return
  fi
  say "downloading $name"
  download "$name" "$work/$name"
  verify
  if [ -n "$before" ]; then say "installing dns11 $release in place of $before"; else say "installing dns11 $release"; fi
  "install_$method"
  say "dns11 $release is installed"
  # sudo may know no programs below /usr/local.
  program=dns11
  if [ "$method" = archive ]; then program=$PREFIX/bin/dns11; fi
  if [ -z "$before" ]; then
    cat <<END

Nothing is started yet. Next:
  sudo $program doctor                    checks every container, and changes nothing
  sudo systemctl enable --now dns11    serves containers, now and after each boot
To undo it: sudo sh install.sh --remove
END
  fi
}

# The files of the archive, and the folders that were not there before it, from the inside out.
remove_listed() {
  while read -r path; do rm -f "$path"; done <"$HOME_FOLDER/installed-files"
  sort -r "$HOME_FOLDER/created-folders" >"$work/folders"
  # Not in place any more before anything of it is gone: this may be interrupted, too.
  rm -rf "$HOME_FOLDER.new"
  mv "$HOME_FOLDER" "$HOME_FOLDER.new"
  rm -rf "$HOME_FOLDER.new"
  while read -r path; do rmdir "$path" 2>/dev/null || true; done <"$work/folders"
}

remove_archive() {
  cp "$HOME_FOLDER/scripts/postrm" "$work/postrm"
  "$HOME_FOLDER/scripts/prerm" remove
  rm -rf "$HOME_FOLDER.previous"
  remove_listed
  sh "$work/postrm" remove
  if [ -z "$purge" ]; then return; fi
  purge_rest
  sh "$work/postrm" purge
}

purge_rest() {
  rm -f "$SETTINGS"
  rmdir "${SETTINGS%/*}" 2>/dev/null || true
  rm -rf "$STATE"
}

remove() {
  [ "$(id -u)" -eq 0 ] || fail 'this needs root: sudo sh install.sh --remove'
  restore_interrupted
  if [ -n "$(deb_version)" ]; then
    if [ -n "$purge" ]; then set -- --purge; else set -- --remove; fi
    dpkg "$@" dns11 || fail 'dpkg could not remove dns11'
  elif [ -e "$LIST" ]; then
    remove_archive
  elif [ -n "$purge" ] && has_deb_rest; then
    dpkg --purge dns11 || fail 'dpkg could not remove dns11'
  elif [ -n "$purge" ] && { [ -e "$SETTINGS" ] || [ -e "$STATE" ]; }; then
    purge_rest
  else
    fail 'dns11 was not installed by this script: there is no Debian package of it, and nothing of it in /usr/local/lib/dns11'
  fi
  say 'dns11 is removed'
  if [ -z "$purge" ] && [ -e "$SETTINGS" ]; then say "$SETTINGS stays; --remove --purge removes it, too"; fi
}

main() {
  # Rules for files that others must be able to read, and programs in places where root has them.
  umask 022
  PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  export PATH
  read_arguments "$@"
  work=$(mktemp -d "${TMPDIR:-/tmp}/dns11-install-XXXXXX")
  trap finish EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  "$action"
}

main "$@"
