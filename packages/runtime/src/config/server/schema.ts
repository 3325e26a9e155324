// The whole server.toml as one schema, and its typed value.
import type * as z from 'zod';
import type { DeepReadonly } from '../deep-freeze.ts';
import { filledText, secretUrl, section, table } from '../values.ts';
import {
  authSchema,
  captureSchema,
  limitsSchema,
  loadBalancingSchema,
  regionSchema,
  serverSchema,
  tlsSchema,
} from './edge-schema.ts';
import { platformSchema } from './platform-schema.ts';

export const serverFileSchema = table({
  data_dir: filledText().default('./data'),
  database: section({
    url: secretUrl(/^postgres(ql)?:\/\//i, 'postgres://user:password@host/name').prefault(''),
  }),
  platform: platformSchema,
  server: serverSchema,
  region: regionSchema,
  auth: authSchema,
  tls: tlsSchema,
  limits: limitsSchema,
  capture: captureSchema,
  load_balancing: loadBalancingSchema,
});

/** Keys are those of the file, to the letter; every key has its value or its default. */
export type ServerConfig = DeepReadonly<z.output<typeof serverFileSchema>>;
