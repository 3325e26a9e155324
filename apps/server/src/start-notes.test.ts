import { loadServerConfig } from '@tunnel/runtime';
import { expect, it } from 'vitest';
import { STACK_DEFAULTS, startNotes } from './start-notes.ts';

const configOf = (overrides: object, defaults: object = {}) => loadServerConfig({ env: {}, defaults, overrides });

it('a start without a file has nothing to say', () => {
  expect(startNotes(configOf({}, STACK_DEFAULTS), 'stack')).toEqual([]);
});

it('a public platform with open sign-up says so, and which key changes it', () => {
  const platform = { public_url: 'https://tunnels.example.com' };
  const notesOf = (more: object, parts: 'stack' | 'platform' | 'edge') =>
    startNotes(configOf({ platform: { ...platform, ...more } }), parts).filter((note) => note.includes('sign_up'));
  expect(notesOf({}, 'stack')).toHaveLength(1);
  expect(notesOf({}, 'platform')).toHaveLength(1);
  expect(notesOf({}, 'edge')).toEqual([]);
  expect(notesOf({ sign_up: 'invite' }, 'stack')).toEqual([]);
  expect(notesOf({ public_url: 'http://localhost:8080' }, 'stack')).toEqual([]);
});

it('a start with a file says where it differs from one without, each key once', () => {
  expect(startNotes(configOf({}), 'stack')).toEqual([
    expect.stringMatching(/^warning: groups are off.*load_balancing\.enabled = true$/),
    'note: platform.plans.free.tunnel_limit is 3 (100 without --config)',
  ]);
  expect(startNotes(configOf({ load_balancing: { enabled: true } }), 'stack')).toHaveLength(1);
  expect(startNotes(configOf({ load_balancing: { enabled: true } }), 'edge')).toEqual([]);
});
