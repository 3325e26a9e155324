// The install scripts, for POSIX shells and for PowerShell: download the client of the server's version, check the file, put it in place.
import { isLoopbackHost } from '@tunnel/rules/net';

export interface InstallScript {
  /** `[platform] public_url` without a slash at the end. Never the Host header of a request, which a stranger chooses. */
  readonly platform: string;
  readonly version: string;
  /** Why there is nothing to install, as a sentence for people. Null: the server has the files. */
  readonly problem: string | null;
}

/** Quotes a text for a POSIX shell. */
const shellText = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
/** Quotes a text for PowerShell. */
const powershellText = (text: string): string => `'${text.replaceAll("'", "''")}'`;

export const shellCommand = (platform: string): string => `curl -fsSL ${platform}/install | sh`;
export const powershellCommand = (platform: string): string => `irm ${platform}/install.ps1 | iex`;

/** Signs in to this platform. The client sends a password over plain http to another machine only if told to. */
export const loginCommand = (platform: string): string => {
  const { protocol, hostname } = new URL(platform);
  return `tunnel login --platform ${platform}${protocol === 'http:' && !isLoopbackHost(hostname) ? ' --no-tls' : ''}`;
};

/**
 * The script for macOS and Linux. A shell runs the script while the script arrives: `main`, in the last line, starts only when everything has
 * arrived. Needs curl or wget, and sha256sum, shasum or openssl.
 */
export const shellScript = ({ platform, version, problem }: InstallScript): string =>
  problem === null
    ? installWithShell(platform, version)
    : `#!/bin/sh
printf '%s\\n' ${shellText(`install: ${problem}`)} >&2
exit 1
`;

const installWithShell = (platform: string, version: string): string => `#!/bin/sh
# Installs the Hatchway client, the command \`tunnel\`, from the server's own files:
#   ${shellCommand(platform)}
# The file goes to ~/.local/bin, or to the folder in TUNNEL_INSTALL_DIR.
set -eu

platform=${shellText(platform)}
version=${shellText(version)}
login=${shellText(loginCommand(platform))}
${SHELL_FUNCTIONS}
main
`;

const SHELL_FUNCTIONS = `
say() {
  printf 'install: %s\\n' "$*"
}

fail() {
  say "$*" >&2
  exit 1
}

has() {
  command -v "$1" >/dev/null 2>&1
}

# Downloads a URL into a file, with a progress bar on a terminal.
download() {
  if has curl; then
    if [ -t 2 ]; then bar=--progress-bar; else bar=-sS; fi
    curl -fL "$bar" --connect-timeout 20 --retry 3 -o "$2" "$1"
  else
    wget -q -O "$2" "$1"
  fi
}

# Prints the SHA-256 of the standard input.
sha256() {
  if has sha256sum; then
    sha256sum
  elif has shasum; then
    shasum -a 256
  else
    openssl dgst -sha256 -r
  fi
}

# Sets \`file\` to the name of the executable for this computer.
choose_file() {
  system=$(uname -s)
  machine=$(uname -m)
  case $system in
    Linux) os=linux ;;
    Darwin) os=darwin ;;
    MINGW* | MSYS* | CYGWIN*) fail "on Windows, run this in PowerShell: irm $platform/install.ps1 | iex" ;;
    *) fail "there is no executable for $system; with Node.js, use npm: $platform/install" ;;
  esac
  case $machine in
    x86_64 | amd64) cpu=x64 ;;
    aarch64 | arm64) cpu=arm64 ;;
    *) fail "there is no executable for $system on $machine; with Node.js, use npm: $platform/install" ;;
  esac
  # On a Mac with an Apple processor, programs translated by Rosetta see an Intel processor.
  if [ "$os-$cpu" = darwin-x64 ] && [ "$(sysctl -n sysctl.proc_translated 2>/dev/null)" = 1 ]; then
    cpu=arm64
  fi
  file=tunnel-$os-$cpu
}

# Sets \`expected\` to the checksum of $file in SHA256SUMS. Empty: the server has no such file.
read_expected() {
  expected=
  while read -r sum name; do
    if [ "$name" = "$file" ]; then expected=$sum; fi
  done <"$1"
}

main() {
  has curl || has wget || fail 'curl or wget is required'
  has sha256sum || has shasum || has openssl || fail 'sha256sum, shasum or openssl is required'
  choose_file
  [ -n "\${TUNNEL_INSTALL_DIR:-}" ] || [ -n "\${HOME:-}" ] || fail 'HOME is not set; set TUNNEL_INSTALL_DIR to a folder'
  folder=\${TUNNEL_INSTALL_DIR:-\${HOME:-}/.local/bin}
  case $folder in
    /*) ;;
    *) folder=$(pwd)/$folder ;;
  esac
  folder=\${folder%/}
  [ ! -d "$folder/tunnel" ] || fail "$folder/tunnel is a folder"
  mkdir -p "$folder" || fail "cannot create the folder $folder"

  # In the same folder, because a rename replaces a file in one step only within a file system.
  work=$folder/.tunnel-install-$$
  mkdir "$work" || fail "cannot write to the folder $folder"
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM

  download "$platform/downloads/SHA256SUMS" "$work/SHA256SUMS" || fail "cannot download $platform/downloads/SHA256SUMS"
  read_expected "$work/SHA256SUMS"
  [ -n "$expected" ] || fail "the server has no $file; with Node.js, use npm: $platform/install"
  say "downloading $file $version from $platform"
  download "$platform/downloads/$file" "$work/$file" || fail "cannot download $platform/downloads/$file; nothing was installed"

  actual=$(sha256 <"$work/$file")
  actual=\${actual%% *}
  [ "$actual" = "$expected" ] || fail "the checksum of $file is wrong ($actual, expected $expected); nothing was installed"
  chmod 755 "$work/$file"
  "$work/$file" --version >/dev/null 2>&1 </dev/null ||
    fail "$file does not run on this computer (on Linux, it needs glibc 2.28 or newer); nothing was installed"
  mv -f "$work/$file" "$folder/tunnel" || fail "cannot replace $folder/tunnel"

  say "installed tunnel $version in $folder"
  case :$PATH: in
    *:"$folder":*)
      found=$(command -v tunnel) || found=
      [ "$found" = "$folder/tunnel" ] || say "another tunnel comes first in PATH: $found"
      ;;
    *) say "$folder is not in PATH; add this line to ~/.profile: export PATH=\\"$folder:\\$PATH\\"" ;;
  esac
  say "to sign in: $login"
}
`;

/** The script for Windows. \`throw\` instead of \`exit\`, which would close the window of a person who ran the script with \`iex\`. */
export const powershellScript = ({ platform, version, problem }: InstallScript): string =>
  problem === null
    ? installWithPowershell(platform, version)
    : `throw ${powershellText(`install: ${problem}`)}
`;

const installWithPowershell = (
  platform: string,
  version: string,
): string => `# Installs the Hatchway client, the command tunnel, from the server's own files:
#   ${powershellCommand(platform)}
# The file goes to .local\\bin in the home folder, or to the folder in TUNNEL_INSTALL_DIR.
& {
  $ErrorActionPreference = 'Stop'
  # The progress display of older versions slows a download down many times.
  $ProgressPreference = 'SilentlyContinue'
  $platform = ${powershellText(platform)}
  $version = ${powershellText(version)}
  $login = ${powershellText(loginCommand(platform))}
${POWERSHELL_STEPS}}
`;

const POWERSHELL_STEPS = `  $file = 'tunnel-win-x64.exe'

  if ($env:OS -ne 'Windows_NT') { throw "install: on macOS and Linux, run this in a shell: curl -fsSL $platform/install | sh" }
  if (-not [Environment]::Is64BitOperatingSystem) { throw 'install: there is no executable for 32-bit Windows' }
  $folder = if ($env:TUNNEL_INSTALL_DIR) { $env:TUNNEL_INSTALL_DIR } else { Join-Path $HOME '.local\\bin' }
  $null = New-Item -ItemType Directory -Force -Path $folder
  $folder = (Resolve-Path -LiteralPath $folder).ProviderPath
  $target = Join-Path $folder 'tunnel.exe'
  $work = Join-Path $folder ".tunnel-install-$PID.exe"
  # Older versions of Windows do not offer TLS 1.2 unless told.
  [Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12

  try {
    $sums = (Invoke-WebRequest -UseBasicParsing -Uri "$platform/downloads/SHA256SUMS").Content
    $expected = ''
    foreach ($line in $sums -split "\`n") {
      $sum, $name = $line.Trim() -split '  ', 2
      if ($name -eq $file) { $expected = $sum }
    }
    if (-not $expected) { throw "install: the server has no $file; with Node.js, use npm: $platform/install" }
    Write-Output "install: downloading $file $version from $platform"
    Invoke-WebRequest -UseBasicParsing -Uri "$platform/downloads/$file" -OutFile $work
    $actual = (Get-FileHash -Algorithm SHA256 -LiteralPath $work).Hash.ToLowerInvariant()
    if ($actual -ne $expected) { throw "install: the checksum of $file is wrong ($actual, expected $expected); nothing was installed" }
    $null = & $work --version
    if ($LASTEXITCODE -ne 0) { throw "install: $file does not run on this computer; nothing was installed" }
    # Windows does not overwrite a program that is running, but can rename the file.
    if (Test-Path -LiteralPath $target) { Move-Item -Force -LiteralPath $target -Destination "$target.old" }
    try { Move-Item -LiteralPath $work -Destination $target }
    catch {
      if (Test-Path -LiteralPath "$target.old") { Move-Item -LiteralPath "$target.old" -Destination $target }
      throw
    }
  }
  finally {
    if (Test-Path -LiteralPath $work) { Remove-Item -Force -LiteralPath $work }
  }

  Write-Output "install: installed tunnel $version in $folder"
  if (($env:Path -split ';') -notcontains $folder) {
    $quoted = $folder -replace "'", "''"
    Write-Output "install: $folder is not in Path; to add the folder for new windows:"
    Write-Output "  [Environment]::SetEnvironmentVariable('Path', [Environment]::GetEnvironmentVariable('Path', 'User') + ';$quoted', 'User')"
  }
  Write-Output "install: to sign in: $login"
`;
