// Cost of this package for a server without `[acme]`: the certificate library is not loaded.
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { expect, it } from 'vitest';

it('the ACME entry point does not load the certificate library until a certificate is needed', async () => {
  const { metafile } = await build({
    entryPoints: [fileURLToPath(new URL('index.ts', import.meta.url))],
    bundle: true,
    write: false,
    metafile: true,
    splitting: true,
    outdir: 'out',
    format: 'esm',
    platform: 'node',
    conditions: ['source'],
    external: ['jose', 'zod', 'pino', 'prom-client'],
  });
  const entry = Object.values(metafile.outputs).find(({ entryPoint }) =>
    entryPoint?.endsWith('certificates/src/acme/index.ts'),
  );
  const reached = Object.keys(entry?.inputs ?? {});
  expect(reached.some((path) => path.endsWith('keeper/certificate-keeper.ts'))).toBe(true);
  expect(reached.filter((path) => /peculiar|reflect-metadata|asn1/.test(path))).toEqual([]);
  const loadedAtOnce = (entry?.imports ?? []).filter(({ kind }) => kind === 'import-statement').map(({ path }) => path);
  const chunks = loadedAtOnce.flatMap((path) => Object.keys(metafile.outputs[path]?.inputs ?? {}));
  expect(chunks.filter((path) => /peculiar|reflect-metadata|asn1/.test(path))).toEqual([]);
});
