// The certificate of every path with TLS, ours and others. All share a key, so that handshakes cost the same.
import { join } from 'node:path';
import { ROOT } from '../../scripts/lib/paths.mjs';

export const CERTIFICATE = join(ROOT, 'packages/testkit/fixtures/tls/cert.pem');
export const KEY = join(ROOT, 'packages/testkit/fixtures/tls/key.pem');
