import { describe, expect, it } from 'vitest';
import { type AdmissionFacts, decideAdmission, type TunnelRequest } from './admission.ts';

const FACTS: AdmissionFacts = {
  tunnelCount: 0,
  tunnelLimit: 2,
  protocols: ['http', 'https', 'tcp'],
  ports: { from: 20000, to: 20099 },
  heldPlace: null,
};

const decide = (request: Partial<TunnelRequest>, facts: Partial<AdmissionFacts> = {}) =>
  decideAdmission({ name: 'db', protocol: 'tcp', ...request }, { ...FACTS, ...facts });

const refusal = (request: Partial<TunnelRequest>, facts?: Partial<AdmissionFacts>): string => {
  const decision = decide(request, facts);
  return decision.kind === 'refused' ? decision.fault.message : 'admitted';
};

describe('what is admitted', () => {
  it('asks for any port, the preferred one, or exactly the one that was named', () => {
    expect(decide({})).toEqual({ kind: 'admitted', wish: { kind: 'port', wish: { kind: 'any' } } });
    expect(decide({ preferredPort: 20005 })).toEqual({
      kind: 'admitted',
      wish: { kind: 'port', wish: { kind: 'rather', port: 20005 } },
    });
    expect(decide({ remotePort: 20005, preferredPort: 20006 })).toEqual({
      kind: 'admitted',
      wish: { kind: 'port', wish: { kind: 'exactly', port: 20005 } },
    });
  });

  it('goes back to the held port on a return, unless another was named', () => {
    expect(decide({ preferredPort: 20006 }, { heldPlace: { kind: 'port', port: 20009 } })).toEqual({
      kind: 'admitted',
      wish: { kind: 'port', wish: { kind: 'rather', port: 20009 } },
    });
    expect(decide({ remotePort: 20001 }, { heldPlace: { kind: 'port', port: 20009 } })).toMatchObject({
      wish: { kind: 'port', wish: { kind: 'exactly', port: 20001 } },
    });
  });

  it('asks for any name, the one it had, or exactly the one that was named, in lower case', () => {
    const wishOf = (request: Partial<TunnelRequest>, facts?: Partial<AdmissionFacts>) => {
      const decision = decide({ protocol: 'http', ...request }, facts);
      return decision.kind === 'admitted' ? decision.wish : decision;
    };
    expect(wishOf({})).toEqual({ kind: 'name', wish: { kind: 'any' } });
    expect(wishOf({ subdomain: 'Web' })).toEqual({ kind: 'name', wish: { kind: 'exactly', name: 'web' } });
    expect(wishOf({ preferredSubdomain: 'web' })).toEqual({ kind: 'name', wish: { kind: 'rather', name: 'web' } });
    expect(wishOf({ preferredSubdomain: 'api' })).toEqual({ kind: 'name', wish: { kind: 'any' } });
    expect(wishOf({}, { heldPlace: { kind: 'name', name: 'old' } })).toEqual({
      kind: 'name',
      wish: { kind: 'rather', name: 'old' },
    });
  });

  it('never counts a return against the limit', () => {
    expect(decide({}, { tunnelCount: 2, heldPlace: { kind: 'port', port: 20009 } }).kind).toBe('admitted');
  });

  it('takes names of 1 to 100 printable characters of any script', () => {
    for (const name of ['a', 'my db', 'Datenbank für Köln', '数据库', '🐘', 'x'.repeat(100), '🐘'.repeat(100)]) {
      expect(refusal({ name })).toBe('admitted');
    }
  });
});

describe('what is refused', () => {
  it('a name that is empty, too long or not printable', () => {
    expect(refusal({ name: '' })).toBe('tunnel name `` is not valid: it is empty');
    expect(refusal({ name: 'x'.repeat(101) })).toContain('it is longer than 100 characters');
    for (const name of ['a\nb', 'a\u0000', '\u202eevil', '\u2028', 'tab\t']) {
      expect(refusal({ name })).toContain('cannot be printed');
      expect(refusal({ name })).not.toContain(name);
    }
  });

  it('a protocol that is not in this version', () => {
    expect(refusal({ protocol: 'udp' })).toBe('tunnels of protocol `udp` are not in this version');
  });

  it('a subdomain that cannot be one', () => {
    expect(refusal({ protocol: 'http', subdomain: 'a.b' })).toContain("subdomain 'a.b' is not valid: only letters");
    expect(refusal({ protocol: 'https', subdomain: 'Admin' })).toBe("subdomain 'Admin' is not valid: it is reserved");
  });

  it('a port outside of the range, and a tunnel over the limit', () => {
    expect(refusal({ remotePort: 80 })).toBe('port 80 is outside of tcp_port_range 20000-20099');
    expect(refusal({}, { tunnelCount: 2 })).toBe('this session holds its limit of 2 tunnels');
  });
});
