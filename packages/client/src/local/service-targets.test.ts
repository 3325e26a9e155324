import { describe, expect, it } from 'vitest';
import { checkServices, type ServiceTable, serviceTargets, serviceTexts } from './service-targets.ts';

describe('the named services of a tunnel', () => {
  it('point to a port of this computer or to another host', () => {
    const services: ServiceTable = { api: 4000, admin: 'admin.internal:5000', six: '[::1]:6000', text: '7000' };
    expect(() => checkServices(services)).not.toThrow();
    expect(Object.fromEntries(serviceTargets(services, null))).toEqual({
      api: { kind: 'address', host: '127.0.0.1', port: 4000, tls: null },
      admin: { kind: 'address', host: 'admin.internal', port: 5000, tls: null },
      six: { kind: 'address', host: '::1', port: 6000, tls: null },
      text: { kind: 'address', host: '127.0.0.1', port: 7000, tls: null },
    });
  });

  it('are equal when they point to the same address', () => {
    expect(serviceTexts({ api: 4000 })).toEqual(serviceTexts({ api: '127.0.0.1:4000' }));
    expect(serviceTexts({ api: 4000 })).not.toEqual(serviceTexts({ api: 4001 }));
  });

  it.each<[string, Record<string, unknown>]>([
    ['a name with a blank', { 'a b': 1 }],
    ['a name that is too long', { ['a'.repeat(33)]: 1 }],
    ['an empty name', { '': 1 }],
    ['port 0', { api: 0 }],
    ['a port that is none', { api: 65_536 }],
    ['half a port', { api: 1.5 }],
    ['a URL', { api: 'http://127.0.0.1:4000' }],
    ['a path', { api: '127.0.0.1:4000/x' }],
    ['nothing', { api: null }],
    ['more than sixteen', Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`s${at}`, at + 1]))],
  ])('are refused with %s', (_what, services) => {
    expect(() => checkServices(services as ServiceTable)).toThrow();
  });
});
