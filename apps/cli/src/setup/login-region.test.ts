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

describe('the regions of a computer', () => {
  const all = [
    region('us', 'us.example.com:443'),
    region('local', '127.0.0.1:4040', false),
    region('eu', 'eu.example.com:443'),
    region('odd', ''),
    region('bad', 'a b'),
  ];

  it('are those with an address, by their id; an edge of the platform’s own machine only where the platform is', () => {
    expect(reachableRegions(all, false).map(({ region_id }) => region_id)).toEqual(['eu', 'us']);
    expect(reachableRegions(all, true).map(({ region_id }) => region_id)).toEqual(['eu', 'local', 'us']);
  });

  it('are named to whoever asks for another one', () => {
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

  it('are none that nobody could type, however long what a platform says is', () => {
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

  it('on this machine are told apart by their ports, and this machine is one by all its names', () => {
    const here = reachableRegions(all, true);
    expect(isServerOf('localhost', here)).toBe(true);
    expect(isServerOf('[::1]:4040', here)).toBe(true);
    expect(isServerOf('127.0.0.1:4041', here)).toBe(false);
  });

  it('a server belongs to them by its host, whatever its port', () => {
    expect(isServerOf('EU.example.com:4040', reachableRegions(all, false))).toBe(true);
    expect(isServerOf('other.example.com:443', reachableRegions(all, false))).toBe(false);
  });
});

describe('what config.yml says about a server', () => {
  const NOTHING: ServerTrust = {
    tls: undefined,
    insecure: false,
    clearTextAllowed: false,
    caFile: undefined,
    isInsecureAllowed: false,
  };
  const settings = (one: UsageRegion, trust: Partial<ServerTrust> = {}) =>
    serverSettings(one, { ...NOTHING, ...trust });

  it('is its address alone where the client does the right thing by itself', () => {
    expect(settings(region('eu', 'eu.example.com:443'))).toEqual({
      changes: { server: 'eu.example.com:443' },
      isClearTextRefused: false,
    });
    expect(settings(region('l', '[::1]:4040', false)).changes).toEqual({ server: '[::1]:4040' });
  });

  it('is written as an address, whatever stands around it', () => {
    expect(settings(region('eu', ' eu.example.com\n')).changes).toEqual({ server: 'eu.example.com:4040' });
  });

  it('is TLS also on this machine when the edge wants it', () => {
    expect(settings(region('l', '127.0.0.1:443')).changes).toEqual({ server: '127.0.0.1:443', tls: true });
  });

  it('is clear text to another machine only when a person allowed it, whatever the platform tells', () => {
    const plain = region('eu', 'eu.example.com:4040', false);
    expect(settings(plain)).toEqual({ changes: { server: 'eu.example.com:4040' }, isClearTextRefused: true });
    expect(settings(plain, { tls: false })).toMatchObject({ changes: { tls: undefined }, isClearTextRefused: true });
    expect(settings(plain, { clearTextAllowed: true })).toMatchObject({
      changes: { tls: false },
      isClearTextRefused: false,
    });
  });

  it('keeps nothing that was allowed for another server', () => {
    const { changes } = settings(region('eu', 'eu.example.com:443'), { tls: false, insecure: true });
    expect(changes).toEqual({ server: 'eu.example.com:443', tls: undefined, insecure: false });
  });

  it('has the authorities and the leniency of this login', () => {
    const trust = { caFile: '/ca.pem', isInsecureAllowed: true };
    expect(settings(region('eu', 'eu.example.com:443'), trust).changes).toMatchObject({
      ca_file: '/ca.pem',
      insecure: true,
    });
  });
});
