// The stand-in's API key and webhook secret: made once, kept in a file of their own for the owner's eyes.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { randomToken, Secret } from '@tunnel/runtime';
import * as z from 'zod';

const shape = z.strictObject({ secret_key: z.string().min(20), webhook_secret: z.string().min(20) });

export interface SimSecrets {
  readonly secretKey: Secret;
  readonly webhookSecret: Secret;
}

export const loadSecrets = (folder: string): SimSecrets => {
  const path = join(folder, 'secrets.json');
  const { secret_key, webhook_secret } = readSecrets(path) ?? makeSecrets(folder, path);
  return { secretKey: new Secret(secret_key), webhookSecret: new Secret(webhook_secret) };
};

const readSecrets = (path: string): z.output<typeof shape> | null => {
  try {
    return shape.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new Error(`${path}: the secrets of the simulator cannot be read`, { cause: error });
  }
};

const makeSecrets = (folder: string, path: string): z.output<typeof shape> => {
  const made = { secret_key: `sk_test_sim_${randomToken()}`, webhook_secret: `whsec_sim_${randomToken()}` };
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(`${path}.part`, `${JSON.stringify(made)}\n`, { mode: 0o600 });
  renameSync(`${path}.part`, path);
  return made;
};
