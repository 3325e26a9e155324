import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { libraryNameOf, libraryTunnelOf, specOfLibrary } from './library-names.ts';
import { hasOption, PROTOS, SPEC_KEYS, type SpecKey, type TunnelSpec } from './tunnel-spec.ts';

const TABLES: Partial<Record<SpecKey, fc.Arbitrary<unknown>>> = {
  files: fc.record({ dir: fc.string(), spa: fc.boolean(), listing: fc.boolean() }, { requiredKeys: ['dir'] }),
  health_check: fc.record(
    { type: fc.constantFrom('tcp', 'http'), interval_secs: fc.integer(), expect_2xx: fc.boolean() },
    { requiredKeys: [] },
  ),
  services: fc.dictionary(fc.string(), fc.integer()),
};

/** Random tunnels with options of their protocol. Library calls only publish tunnels, so the option of the connecting side is left out. */
const specs = fc.constantFrom(...PROTOS).chain((proto) => {
  const keys = SPEC_KEYS.filter((key) => hasOption(proto, key) && key !== 'p2p_connect');
  const values = Object.fromEntries(
    keys.map((key) => [key, TABLES[key] ?? fc.jsonValue().filter((value) => value !== null)]),
  );
  return fc
    .record(values, { requiredKeys: [] })
    .map((options) => ({ proto, name: 'shop', ...options }) as TunnelSpec & { name: string });
});

describe('library option names', () => {
  it('convert back to the same tunnel', () => {
    fc.assert(
      fc.property(specs, (spec) => {
        expect(specOfLibrary(libraryTunnelOf(spec))).toEqual(spec);
      }),
    );
  });

  it.each([
    ['local_tls_verify', 'localTlsVerify'],
    ['idle_secs', 'idleSecs'],
    ['p2p_publish', 'p2pName'],
    ['p2p_secret', 'secret'],
    ['group', 'group'],
  ] as const)('spell %s as %s', (key, name) => {
    expect(libraryNameOf(key)).toBe(name);
  });

  it('in a nested table follow the same rule, except for service names', () => {
    const tunnel = {
      protocol: 'http',
      localPort: 1,
      services: { some_api: 2 },
      healthCheck: { intervalSecs: 5, expect2xx: false },
    } as const;
    expect(specOfLibrary(tunnel)).toEqual({
      proto: 'http',
      local_port: 1,
      services: { some_api: 2 },
      health_check: { interval_secs: 5, expect_2xx: false },
    });
  });

  it('of an http tunnel leave out localTlsVerify', () => {
    expect(specOfLibrary({ protocol: 'http', localTlsVerify: false })).toEqual({ proto: 'http' });
    expect(specOfLibrary({ protocol: 'https', localTlsVerify: false })).toMatchObject({ local_tls_verify: false });
  });
});
