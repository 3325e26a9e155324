import { AcmeServer } from '@tunnel/testkit';
import { afterEach, describe } from 'vitest';
import { acmeConformance } from './acme.conformance.ts';

describe.each([
  { title: 'the testkit authority', reuse: false, refuseNonceEvery: 0 },
  {
    title: 'the testkit authority that reuses authorizations and refuses every second nonce',
    reuse: true,
    refuseNonceEvery: 2,
  },
])('$title', ({ reuse, refuseNonceEvery }) => {
  let server: AcmeServer;

  afterEach(() => server.close());

  acmeConformance(async (ports) => {
    const records = new Map<string, string>();
    server = await AcmeServer.start({
      addressOf: () => ({ host: '127.0.0.1', ...ports }),
      txt: async (name) => [records.get(name) ?? ''],
      reuse,
    });
    server.refuseNonceEvery = refuseNonceEvery;
    return {
      directory: server.directory,
      ca: server.ca,
      root: async () => server.root,
      setTxt: async (name, value) => void records.set(name, value),
      clearTxt: async (name) => void records.delete(name),
    };
  });
});
