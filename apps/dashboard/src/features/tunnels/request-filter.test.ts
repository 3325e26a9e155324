import { expect, it } from 'vitest';
import { filterRequests, methodsOf, NO_FILTER, type RequestFilter } from './request-filter.ts';

const requests = [
  { id: 'req_1', method: 'GET', path: '/shop?page=2', status: 200 },
  { id: 'req_2', method: 'POST', path: '/hook', status: 500, replay_of: 'req_0' },
  { id: 'req_3', method: 'GET', path: '/gone', status: 404 },
  { id: 'req_4', method: 'GET', path: '/slow', status: null },
  {
    id: 'req_5',
    method: 'GET',
    path: '/admin',
    status: 403,
    policy: { answered_by: { index: 1, name: null, action: 'deny' }, matched: [1], user: 'ann@example.com' },
  },
];

const found = (filter: Partial<RequestFilter>): string[] =>
  filterRequests(requests, { ...NO_FILTER, ...filter }).map(({ id }) => id);

it.each<[Partial<RequestFilter>, string[]]>([
  [{}, ['req_1', 'req_2', 'req_3', 'req_4', 'req_5']],
  [{ status: '5' }, ['req_2']],
  [{ status: '4' }, ['req_3', 'req_5']],
  [{ status: 'none' }, ['req_4']],
  [{ status: 'turned-away' }, ['req_5']],
  [{ text: 'ann@' }, ['req_5']],
  [{ method: 'GET', status: '2' }, ['req_1']],
  [{ text: 'get /S' }, ['req_1', 'req_4']],
  [{ text: '500' }, ['req_2']],
  [{ text: 'REQ_3' }, ['req_3']],
  [{ text: 'replay' }, ['req_2']],
  [{ text: 'nothing like it' }, []],
])('the request filter %j finds %j', (filter, ids) => expect(found(filter)).toEqual(ids));

it('an empty request filter returns the same list object, so that the page is not redrawn', () => {
  expect(filterRequests(requests, NO_FILTER)).toBe(requests);
});

it('the method filter offers the methods of the list and the chosen method', () => {
  expect(methodsOf(requests, '')).toEqual(['GET', 'POST']);
  expect(methodsOf(requests, 'PUT')).toEqual(['GET', 'POST', 'PUT']);
});
