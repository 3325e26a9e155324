import type { UsageRegion } from '@tunnel/contract';
import { describe, expect, it } from 'vitest';
import {
  isServerOf,
  reachableRegions,
  regionLines,
  regionNamed,
  type ServerTrust,
  serverSettings,
} from './login-region.ts';

const region = (region_id: string, control: string, control_tls = true): UsageRegion => ({
  region_id,
  control,
  control_tls,
  name: region_id.toUpperCase(),
  location: '',
  http_url: '',
});

describe('regions offered at login', () => {
  const all = [
    region('us', 'us.example.com:443'),
    region('local', '127.0.0.1:4040', false),
    region('eu', 'eu.example.com:443'),
    region('odd', ''),
    region('bad', 'a b'),
  ];

  it('have an address and are sorted by id, and a local edge is offered only next to a local platform', () => {
    expect(reachableRegions(all, false).map(({ region_id }) => region_id)).toEqual(['eu', 'us']);
    expect(reachableRegions(all, true).map(({ region_id }) => region_id)).toEqual(['eu', 'local', 'us']);
  });

  it('are listed in the error for an unknown region', () => {
    expect(regionNamed('eu', all)).toBe(all[2]);
    expect(() => regionNamed('mars', reachableRegions(all, false))).toThrow("no region 'mars'. Use eu, us.");
    expect(() => regionNamed('eu', [])).toThrow("no region 'eu': no edge is online.");
    expect(regionLines([region('eu', 'a:1'), { ...region('local', 'b:1'), location: 'Bern\u001b[2J' }])).toEqual([
      '  eu',
      '  local  (Bern [2J)',
    ]);
    expect(regionLines([{ ...region('fra', 'a:1'), name: 'Frankfurt', location: 'DE' }])).toEqual([
      '  fra  Frankfurt (DE)',
    ]);
  });

  it('are limited to ids that can be typed, to 1,000 entries and to short lines', () => {
    const odd = ['', ' ', 'a\nb', 'a\u001b[2J', '\u202eus', 'x'.repeat(101)].map((id) =>
      region(id, 'eu.example.com:443'),
    );
    const far = region('far', `${'a.'.repeat(200)}example.com:443`);
    expect(reachableRegions([...odd, far, region('eu', 'eu.example.com')], false)).toEqual([
      region('eu', 'eu.example.com'),
    ]);
    const many = Array.from({ length: 2000 }, (_, at) => region(`r${at}`, 'eu.example.com'));
    expect(reachableRegions(many, false)).toHaveLength(1000);
    expect(regionLines([{ ...region('eu', 'a:1'), name: 'x'.repeat(5000) }])[0]).toHaveLength(106);
  });

  it('are distinguished by port on this machine, and all loopback names are equal', () => {
    const here = reachableRegions(all, true);
    expect(isServerOf('localhost', here)).toBe(true);
    expect(isServerOf('[::1]:4040', here)).toBe(true);
    expect(isServerOf('127.0.0.1:4041', here)).toBe(false);
  });

  it('contain a server if the host matches, whatever its port', () => {
    expect(isServerOf('EU.example.com:4040', reachableRegions(all, false))).toBe(true);
    expect(isServerOf('other.example.com:443', reachableRegions(all, false))).toBe(false);
  });
});

describe('server settings for config.yml', () => {
  const NOTHING: ServerTrust = {
    tls: undefined,
    insecure: false,
    clearTextAllowed: false,
    caFile: undefined,
    isInsecureAllowed: false,
  };
  const settings = (one: UsageRegion, trust: Partial<ServerTrust> = {}) =>
    serverSettings(one, { ...NOTHING, ...trust });

  it("contain only the address when the client's defaults fit", () => {
    expect(settings(region('eu', 'eu.example.com:443'))).toEqual({
      changes: { server: 'eu.example.com:443' },
      isClearTextRefused: false,
    });
    expect(settings(region('l', '[::1]:4040', false)).changes).toEqual({ server: '[::1]:4040' });
  });

  it('contain a normalized address', () => {
    expect(settings(region('eu', ' eu.example.com\n')).changes).toEqual({ server: 'eu.example.com:4040' });
  });

  it('turn TLS on for a local edge that requires it', () => {
    expect(settings(region('l', '127.0.0.1:443')).changes).toEqual({ server: '127.0.0.1:443', tls: true });
  });

  it("allow unencrypted connections to another machine only with the user's permission", () => {
    const plain = region('eu', 'eu.example.com:4040', false);
    expect(settings(plain)).toEqual({ changes: { server: 'eu.example.com:4040' }, isClearTextRefused: true });
    expect(settings(plain, { tls: false })).toMatchObject({ changes: { tls: undefined }, isClearTextRefused: true });
    expect(settings(plain, { clearTextAllowed: true })).toMatchObject({
      changes: { tls: false },
      isClearTextRefused: false,
    });
  });

  it('drop the permissions given for another server', () => {
    const { changes } = settings(region('eu', 'eu.example.com:443'), { tls: false, insecure: true });
    expect(changes).toEqual({ server: 'eu.example.com:443', tls: undefined, insecure: false });
  });

  it('keep the CA file and the permission given with this login', () => {
    const trust = { caFile: '/ca.pem', isInsecureAllowed: true };
    expect(settings(region('eu', 'eu.example.com:443'), trust).changes).toMatchObject({
      ca_file: '/ca.pem',
      insecure: true,
    });
  });
});
