// Software bills of materials in the CycloneDX format, from npm and the lock file.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { npm } from './programs.mjs';
import { jsonText } from './records.mjs';

/** The workspaces in each artifact. The dashboard is inside the server's package. */
const SBOMS = {
  client: ['packages/client'],
  cli: ['apps/cli'],
  server: ['apps/server', 'apps/dashboard'],
};

export async function makeSboms({ out, say }) {
  mkdirSync(join(out, 'sbom'), { recursive: true });
  for (const [name, workspaces] of Object.entries(SBOMS)) {
    const chosen = workspaces.flatMap((workspace) => ['--workspace', workspace]);
    const printed = await npm(['sbom', '--sbom-format=cyclonedx', '--omit=dev', '--package-lock-only', ...chosen]);
    writeFileSync(join(out, 'sbom', `${name}.cdx.json`), jsonText(JSON.parse(printed)));
    say(`sbom/${name}.cdx.json`);
  }
  return {};
}
