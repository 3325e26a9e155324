// The first file of the program: runs the bundle for the command line.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { chooseBundle } from './choose-bundle.ts';

interface Loaded {
  main(args: readonly string[], keepCode: () => void): unknown;
}

const launch = async (args: readonly string[]): Promise<void> => {
  const { bundle, uses } = chooseBundle(args);
  const file = join(__dirname, `${bundle}.cjs`);
  const load = createRequire(file);
  // Reading the cache takes longer than compiling a small bundle.
  if (uses === null) return void (load(file) as Loaded).main(args, () => {});
  const loaded = (await import('@tunnel/runtime')).loadWithCodeCache(file, uses, load);
  (loaded.exports as Loaded).main(args, loaded.keepCode);
};

void launch(process.argv.slice(2));
