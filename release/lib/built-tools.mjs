// Programs that a release needs and that npm does not have: built once from source into the cache, where Go or Cargo is installed.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { CACHE_DIR } from '../../scripts/lib/paths.mjs';
import { run } from './programs.mjs';

const TOOLS = {
  nfpm: {
    version: 'v2.45.0',
    builder: 'go',
    program: 'nfpm',
    build: (version, folder) => [['install', `github.com/goreleaser/nfpm/v2/cmd/nfpm@${version}`], { GOBIN: folder }],
  },
  rcodesign: {
    version: '0.29.0',
    builder: 'cargo',
    program: 'bin/rcodesign',
    build: (version, folder) => [['install', 'apple-codesign', '--locked', '--version', version, '--root', folder], {}],
  },
};

/** Builds a tool if the cache does not have it. Returns the path of the program as { path }, or the reason why there is none as { missing }. */
export async function builtTool(name, say) {
  const { version, builder, program, build } = TOOLS[name];
  const folder = join(CACHE_DIR, 'release', `${name}-${version}`);
  const path = join(folder, program);
  if (existsSync(path)) return { path };
  if (!(await isInstalled(builder))) return { missing: `because ${name} is not found, nor ${builder} to build it` };
  say(`building ${name} ${version} with ${builder}, which takes some minutes the first time`);
  const [args, env] = build(version, folder);
  try {
    await run(builder, args, { env: { ...process.env, ...env } });
    return { path };
  } catch (error) {
    const [reason] = error.message.trimEnd().split('\n').slice(-1);
    return { missing: `because ${builder} could not build ${name}: ${reason.trim()}` };
  }
}

/** Whether a program is on the PATH. */
export async function isInstalled(program) {
  try {
    await run(program, [program === 'go' ? 'version' : '--version']);
    return true;
  } catch (error) {
    if (error.cause?.code === 'ENOENT') return false;
    throw error;
  }
}
