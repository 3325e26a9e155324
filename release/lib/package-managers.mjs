// Files for package managers that download a single executable: a formula for Homebrew and a manifest for Scoop, as pure functions.

const DESCRIPTION = 'Gives a service on your computer a public URL';

/** The systems of a formula, in the words of Homebrew. */
const BREW = {
  'darwin-arm64': ['macos', 'arm'],
  'darwin-x64': ['macos', 'intel'],
  'linux-arm64': ['linux', 'arm'],
  'linux-x64': ['linux', 'intel'],
};

/** `files`: the executables as { target, name, sha256 }. Null without a file for macOS or Linux. */
export function formulaOf({ version, baseUrl, files }) {
  const blocks = ['macos', 'linux'].flatMap((system) => {
    const ofSystem = files.filter(({ target }) => BREW[target]?.[0] === system);
    if (ofSystem.length === 0) return [];
    const downloads = ofSystem.flatMap(({ target, name, sha256 }) => [
      `    on_${BREW[target][1]} do`,
      `      url "${baseUrl}/${name}"`,
      `      sha256 "${sha256}"`,
      '    end',
    ]);
    return [[`  on_${system} do`, ...downloads, '  end'].join('\n')];
  });
  if (blocks.length === 0) return null;
  return `class Hatchway < Formula
  desc "${DESCRIPTION}"
  homepage "${baseUrl}"
  version "${version}"
  license "Apache-2.0"

${blocks.join('\n\n')}

  def install
    bin.install Dir["tunnel-*"].first => "tunnel"
    generate_completions_from_executable(bin/"tunnel", "completion")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/tunnel --version")
  end
end
`;
}

/** Null without a file for Windows. */
export function scoopManifestOf({ version, baseUrl, files }) {
  const file = files.find(({ target }) => target === 'win-x64');
  if (!file) return null;
  return {
    version,
    description: DESCRIPTION,
    homepage: baseUrl,
    license: 'Apache-2.0',
    // Scoop saves the download under the name after the number sign.
    architecture: { '64bit': { url: `${baseUrl}/${file.name}#/tunnel.exe`, hash: file.sha256 } },
    bin: 'tunnel.exe',
  };
}
