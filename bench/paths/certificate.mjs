// The certificate that every path with TLS shows, ours and others: one key, so that handshakes cost all of them the same.
import { join } from 'node:path';
import { ROOT } from '../../scripts/lib/paths.mjs';

export const CERTIFICATE = join(ROOT, 'packages/testkit/fixtures/tls/cert.pem');
export const KEY = join(ROOT, 'packages/testkit/fixtures/tls/key.pem');
