import { describe, expect, it } from 'vitest';
import { decideRegistration, type RegistrationFacts, type TunnelRequest } from './registration.rules.ts';

const FACTS: RegistrationFacts = {
  tunnelCount: 0,
  tunnelLimit: 2,
  ports: { tcp: { from: 20000, to: 20099 }, udp: { from: 20100, to: 20199 } },
  heldEndpoint: null,
  loadBalancing: true,
  capabilities: ['datagram', 'p2p', 'tls'],
  switchedOff: [],
  domainNames: { toAscii: (name) => name, operatorsHosts: ['tunnels.example.com'] },
  hasHttpsPort: true,
};

const decide = (request: Partial<TunnelRequest>, facts: Partial<RegistrationFacts> = {}) =>
  decideRegistration({ name: 'db', protocol: 'tcp', ...request }, { ...FACTS, ...facts });

const refusal = (request: Partial<TunnelRequest>, facts?: Partial<RegistrationFacts>): string => {
  const decision = decide(request, facts);
  return decision.kind === 'refused' ? decision.fault.message : 'admitted';
};

describe('an admitted registration', () => {
  it('gets any port, the preferred port, or exactly the requested port', () => {
    expect(decide({})).toEqual({
      kind: 'admitted',
      wanted: { kind: 'port', transport: 'tcp', wanted: { kind: 'any' } },
    });
    expect(decide({ preferred_port: 20005 })).toEqual({
      kind: 'admitted',
      wanted: { kind: 'port', transport: 'tcp', wanted: { kind: 'preferred', port: 20005 } },
    });
    expect(decide({ remote_port: 20005, preferred_port: 20006 })).toEqual({
      kind: 'admitted',
      wanted: { kind: 'port', transport: 'tcp', wanted: { kind: 'exact', port: 20005 } },
    });
  });

  it('gets its held port when it returns, unless another port is requested', () => {
    expect(
      decide({ preferred_port: 20006 }, { heldEndpoint: { kind: 'port', transport: 'tcp', port: 20009 } }),
    ).toEqual({
      kind: 'admitted',
      wanted: { kind: 'port', transport: 'tcp', wanted: { kind: 'preferred', port: 20009 } },
    });
    expect(
      decide({ remote_port: 20001 }, { heldEndpoint: { kind: 'port', transport: 'tcp', port: 20009 } }),
    ).toMatchObject({
      wanted: { kind: 'port', transport: 'tcp', wanted: { kind: 'exact', port: 20001 } },
    });
  });

  it('gets any name, its earlier name, or exactly the requested name in lower case', () => {
    const wantedOf = (request: Partial<TunnelRequest>, facts?: Partial<RegistrationFacts>) => {
      const decision = decide({ protocol: 'http', ...request }, facts);
      return decision.kind === 'admitted' ? decision.wanted : decision;
    };
    expect(wantedOf({})).toEqual({ kind: 'name', wanted: { kind: 'any' } });
    expect(wantedOf({ subdomain: 'Web' })).toEqual({ kind: 'name', wanted: { kind: 'exact', name: 'web' } });
    expect(wantedOf({ preferred_subdomain: 'web' })).toEqual({
      kind: 'name',
      wanted: { kind: 'preferred', name: 'web' },
    });
    expect(wantedOf({ preferred_subdomain: 'api' })).toEqual({ kind: 'name', wanted: { kind: 'any' } });
    expect(wantedOf({}, { heldEndpoint: { kind: 'name', name: 'old' } })).toEqual({
      kind: 'name',
      wanted: { kind: 'preferred', name: 'old' },
    });
  });

  it('of a tls tunnel gets the requested name, from the same names as http', () => {
    const wanted = { kind: 'name', wanted: { kind: 'exact', name: 'db' } };
    expect(decide({ protocol: 'tls', subdomain: 'DB' })).toEqual({ kind: 'admitted', wanted });
    for (const protocol of ['http', 'https', 'tls']) {
      const domain = { kind: 'domain', wanted: { kind: 'exact', name: 'db.example.net' } };
      expect(decide({ protocol, domain: 'DB.example.net.' })).toEqual({ kind: 'admitted', wanted: domain });
    }
    const group = { group: 'db', group_key_hash: 'a'.repeat(64), health_check: { type: 'tcp' as const } };
    expect(decide({ protocol: 'tls', ...group })).toMatchObject({
      wanted: { kind: 'group', wanted: { protocol: 'tls', endpoint: { kind: 'name', name: 'db' } } },
    });
  });

  it('does not count toward the limit when it returns', () => {
    expect(decide({}, { tunnelCount: 2, heldEndpoint: { kind: 'port', transport: 'tcp', port: 20009 } }).kind).toBe(
      'admitted',
    );
  });

  it('can have a name of 1 to 100 printable characters in any script', () => {
    for (const name of ['a', 'my db', 'Datenbank für Köln', '数据库', '🐘', 'x'.repeat(100), '🐘'.repeat(100)]) {
      expect(refusal({ name })).toBe('admitted');
    }
  });
});

describe('a registration is refused for', () => {
  it('an empty, too long or unprintable tunnel name', () => {
    expect(refusal({ name: '' })).toBe('tunnel name `` is not valid: it is empty');
    expect(refusal({ name: 'x'.repeat(101) })).toContain('it is longer than 100 characters');
    for (const name of ['a\nb', 'a\u0000', '\u202eevil', '\u2028', 'tab\t']) {
      expect(refusal({ name })).toContain('cannot be printed');
      expect(refusal({ name })).not.toContain(name);
    }
  });

  it('an unknown protocol', () => {
    expect(refusal({ protocol: 'sctp' })).toBe('this edge does not support `sctp` tunnels');
  });

  it('udp and p2p without the capability or switched off by the operator', () => {
    for (const [protocol, capability] of [
      ['udp', 'datagram'],
      ['p2p', 'p2p'],
    ] as const) {
      const others = FACTS.capabilities.filter((agreed) => agreed !== capability);
      expect(refusal({ protocol }, { capabilities: others })).toBe(
        `this edge does not support \`${protocol}\` tunnels`,
      );
      const decision = decide({ protocol }, { switchedOff: [protocol] });
      expect(decision).toMatchObject({ kind: 'refused', fault: { code: 'TUNNEL_PROTOCOL_OFF', retryable: false } });
      expect(refusal({ protocol }, { switchedOff: [protocol] })).toBe(
        `${protocol} tunnels are switched off on this edge`,
      );
    }
  });

  it('a tls tunnel without a hostname, without an https port, or with an http health check', () => {
    const tls = { protocol: 'tls', subdomain: 'db' };
    expect(refusal(tls, { hasHttpsPort: false })).toBe('tls tunnels need the https port');
    expect(refusal({ protocol: 'tls' })).toBe('a tls tunnel needs a domain or a subdomain');
    expect(refusal({ protocol: 'tls' }, { heldEndpoint: { kind: 'name', name: 'old' } })).toContain('needs a domain');
    expect(refusal({ ...tls, health_check: { type: 'http', path: '/' } })).toBe(
      'tls tunnels support only health checks of type tcp',
    );
    expect(refusal(tls, { capabilities: ['datagram'] })).toBe('this edge does not support `tls` tunnels');
  });

  it('an invalid custom domain, or a custom domain with another protocol', () => {
    expect(refusal({ protocol: 'http', domain: 'shop.tunnels.example.com' })).toContain(
      "domain 'shop.tunnels.example.com' is not valid",
    );
    expect(refusal({ protocol: 'tcp', domain: 'db.example.net' })).toContain('not for tcp');
    expect(refusal({ protocol: 'tls', subdomain: 'db', domain: 'db.example.net' })).toContain('not both');
  });

  it('an invalid subdomain', () => {
    expect(refusal({ protocol: 'http', subdomain: 'a.b.c' })).toContain(
      "subdomain 'a.b.c' is not valid: it has more than two labels",
    );
    expect(refusal({ protocol: 'https', subdomain: 'Admin' })).toBe("subdomain 'Admin' is not valid: it is reserved");
  });

  it('a port outside the range, and a tunnel over the limit', () => {
    expect(refusal({ remote_port: 80 })).toBe('port 80 is not allowed: use 20000-20099');
    expect(refusal({ protocol: 'udp', remote_port: 20000 })).toBe('port 20000 is not allowed: use 20100-20199');
    expect(refusal({}, { tunnelCount: 2 })).toBe('tunnel limit of 2 per session reached');
  });
});

const HASH = 'a'.repeat(64);

describe('a udp tunnel', () => {
  it('gets a port of the udp range, and its earlier udp port, but not the port of a tcp tunnel', () => {
    const wanted = (heldEndpoint: RegistrationFacts['heldEndpoint']) => decide({ protocol: 'udp' }, { heldEndpoint });
    expect(wanted({ kind: 'port', transport: 'udp', port: 20105 })).toEqual({
      kind: 'admitted',
      wanted: { kind: 'port', transport: 'udp', wanted: { kind: 'preferred', port: 20105 } },
    });
    expect(wanted({ kind: 'port', transport: 'tcp', port: 20105 })).toMatchObject({
      wanted: { transport: 'udp', wanted: { kind: 'any' } },
    });
  });
});

describe('a p2p tunnel', () => {
  const p2p = { protocol: 'p2p', p2p_name: 'Office-DB', p2p_secret_hash: HASH };

  it('gets its name in lower case with its offer: a tcp service for its own account by default', () => {
    expect(decide(p2p)).toEqual({
      kind: 'admitted',
      wanted: {
        kind: 'peer-name',
        wanted: { kind: 'exact', name: 'office-db' },
        offer: { name: 'office-db', secretHash: HASH, service: 'tcp', allow: 'account' },
      },
    });
    expect(decide({ ...p2p, p2p_service: 'udp', p2p_allow: 'anyone' })).toMatchObject({
      wanted: { offer: { service: 'udp', allow: 'anyone' } },
    });
  });

  it.each([
    [{ p2p_name: 'a.b' }, "p2p name 'a.b' is not valid: only letters a-z, digits and hyphens are allowed"],
    [{ p2p_name: 'Admin' }, "p2p name 'Admin' is not valid: it is reserved"],
    [{ p2p_name: undefined }, "p2p name '' is not valid: it is empty"],
    [{ p2p_secret_hash: undefined }, 'p2p_secret_hash must be 64 lower-case hex digits'],
    [{ p2p_secret_hash: 'A'.repeat(64) }, 'p2p_secret_hash must be 64 lower-case hex digits'],
  ])('with %j is refused', (fields, message) => {
    expect(refusal({ ...p2p, ...fields })).toBe(message);
  });
});

describe.each(['udp', 'p2p'])('groups and health checks of %s tunnels', (protocol) => {
  const fields = { protocol, p2p_name: 'db', p2p_secret_hash: HASH };

  it('are refused', () => {
    for (const group of [{ group: 'web' }, { group_key_hash: HASH }, { group: 'web', group_key_hash: HASH }]) {
      expect(refusal({ ...fields, ...group })).toBe('groups exist for http and tcp tunnels only');
    }
    expect(refusal({ ...fields, health_check: { type: 'tcp' } })).toBe(
      'health_check exists for http and tcp tunnels only',
    );
    expect(decide({ ...fields, group: 'web' })).toMatchObject({ fault: { code: 'GROUP_FIELDS_INVALID' } });
  });

  it('are ignored while load balancing is off', () => {
    expect(refusal({ ...fields, group: 'web', group_key_hash: HASH }, { loadBalancing: false })).toBe('admitted');
  });
});

describe('a tunnel with a group', () => {
  const wantedOf = (request: Partial<TunnelRequest>, facts?: Partial<RegistrationFacts>) => {
    const decision = decide({ group: 'web', group_key_hash: HASH, ...request }, facts);
    return decision.kind === 'admitted' ? decision.wanted : decision.fault.message;
  };

  it('asks for the group by name, key hash and protocol, with an endpoint for a new group', () => {
    expect(wantedOf({ protocol: 'tcp', preferred_port: 20005 })).toEqual({
      kind: 'group',
      wanted: {
        protocol: 'tcp',
        name: 'web',
        keyHash: HASH,
        endpoint: { kind: 'port', transport: 'tcp', wanted: { kind: 'preferred', port: 20005 } },
      },
    });
    expect(wantedOf({ protocol: 'https', subdomain: 'Shop' })).toMatchObject({
      kind: 'group',
      wanted: { protocol: 'https', name: 'web', endpoint: { kind: 'name', name: 'shop' } },
    });
  });

  it('of http or tls can use a custom domain, under any group name', () => {
    for (const protocol of ['http', 'tls'] as const) {
      expect(wantedOf({ protocol, group: 'my web', domain: '*.Shop.example.net' })).toMatchObject({
        kind: 'group',
        wanted: { protocol, name: 'my web', endpoint: { kind: 'domain', name: '*.shop.example.net' } },
      });
    }
  });

  it('of http uses the group’s name as its subdomain, if the name is a valid subdomain', () => {
    expect(wantedOf({ protocol: 'http', group: 'Web' })).toMatchObject({ wanted: { endpoint: { name: 'web' } } });
    expect(wantedOf({ protocol: 'http', group: 'my web' })).toMatch(/^group `my web` needs a subdomain, because/);
    expect(wantedOf({ protocol: 'http', group: 'api' })).toMatch(/needs a subdomain/);
    expect(wantedOf({ protocol: 'http', group: 'my web', subdomain: 'w' })).toMatchObject({ kind: 'group' });
    expect(wantedOf({ protocol: 'http', subdomain: 'a b' })).toMatch(/^subdomain 'a b' is not valid/);
  });

  it('is an ordinary tunnel when load balancing is off, even with invalid group fields', () => {
    const off = { loadBalancing: false };
    expect(wantedOf({ protocol: 'tcp' }, off)).toEqual({ kind: 'port', transport: 'tcp', wanted: { kind: 'any' } });
    expect(wantedOf({ protocol: 'http', subdomain: 'w' }, off)).toMatchObject({ kind: 'name' });
    expect(wantedOf({ protocol: 'tcp', group_key_hash: undefined, group: '@' }, off)).toMatchObject({ kind: 'port' });
    expect(wantedOf({ protocol: 'tcp', health_check: { type: 'http' } }, off)).toMatchObject({ kind: 'port' });
  });

  it.each([
    ['a group without a key', { group_key_hash: undefined }, 'a group needs a group key'],
    ['a key without a group', { group: undefined }, 'a group key needs a group'],
    ['a hash in upper case', { group_key_hash: 'A'.repeat(64) }, 'group_key_hash must be 64 lower-case hex digits'],
    ['a short hash', { group_key_hash: 'a'.repeat(63) }, 'group_key_hash must be 64 lower-case hex digits'],
    ['an empty name', { group: '' }, 'group name `` is not valid: it is empty'],
    ['a name with @', { group: 'a@b' }, 'group name `a@b` is not valid: @ is not allowed'],
    [
      'a name with a line break',
      { group: 'a\nb' },
      'group name `a?b` is not valid: it has characters that cannot be printed',
    ],
    [
      'a long name',
      { group: 'x'.repeat(101) },
      `group name \`${'x'.repeat(40)}\` is not valid: it is longer than 100 characters`,
    ],
    ['type http without a path', { health_check: { type: 'http' } }, 'a health check of type http needs a path'],
    [
      'a path without its slash',
      { health_check: { type: 'http', path: 'health' } },
      'the path of a health check must begin with / and contain no spaces or control characters',
    ],
    [
      'a path that would end the request line',
      { health_check: { type: 'http', path: '/a HTTP/1.1\r\nx: y' } },
      'the path of a health check must begin with / and contain no spaces or control characters',
    ],
  ] as const)('is refused for %s', (_, request, message) => {
    expect(wantedOf({ protocol: 'tcp', ...request } as Partial<TunnelRequest>)).toBe(message);
  });

  it('counts toward the limit, except when it returns', () => {
    expect(wantedOf({}, { tunnelCount: 2 })).toBe('tunnel limit of 2 per session reached');
    expect(wantedOf({}, { tunnelCount: 2, heldEndpoint: { kind: 'member', groupId: 'g' } })).toMatchObject({
      kind: 'group',
    });
  });
});

describe('the Host header for the local service', () => {
  it.each(['keep', 'rewrite', 'shop.test', 'SHOP.test:8080', '[::1]:80', '127.0.0.1', 'a_b'])(
    'can be %j',
    (host_header) => {
      expect(decide({ protocol: 'http', host_header }).kind).toBe('admitted');
    },
  );

  it.each([
    '',
    '[::1',
    'a/b',
    '@',
    'a@b',
    'a b',
    ':',
    'x:y',
    'x:65536',
    '\u00fc',
    'a#b',
    'a?b',
    '%00',
    'a\r\nb',
    'a'.repeat(261),
  ])('is refused and named in the message: %j', (host_header) => {
    expect(refusal({ protocol: 'http', host_header })).toMatch(
      /^invalid host header `.*`: expected a host name with an optional port$/,
    );
  });
});
