// The unit file of the repository, inserted into the bundle, so that an installed server needs no further file.
import { readFileSync } from 'node:fs';

/** Text of deploy/systemd/tunnel-server.service, inserted by the bundler. Undefined if the sources run without a bundle, as in tests. */
declare const __TUNNEL_UNIT__: string | undefined;

export const unitTemplate = (): string =>
  typeof __TUNNEL_UNIT__ === 'string'
    ? __TUNNEL_UNIT__
    : readFileSync(new URL('../../../../deploy/systemd/tunnel-server.service', import.meta.url), 'utf8');
