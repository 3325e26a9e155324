import { expect, it } from 'vitest';
import { changeFilter, readFilter } from './queries.ts';

it('reads what it knows of an address, and nothing else', () => {
  expect(readFilter({ protocol: 'tcp', state: 'closed' })).toEqual({ protocol: 'tcp', state: 'closed' });
  expect(readFilter({ protocol: 'gopher', state: 'all' })).toEqual({});
  expect(readFilter({})).toEqual({});
});

it('changes one part and keeps the other', () => {
  expect(changeFilter({ protocol: 'tcp' }, { state: 'active' })).toEqual({ protocol: 'tcp', state: 'active' });
  expect(changeFilter({ protocol: 'tcp', state: 'active' }, { protocol: 'all' })).toEqual({ state: 'active' });
  expect(changeFilter({ state: 'active' }, { state: 'all' })).toEqual({});
});
