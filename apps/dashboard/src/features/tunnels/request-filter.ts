// Filters captured requests by status, method and text. Pure functions.
import type { CapturedRequest } from '@tunnel/contract';
import { isTurnedAway } from './policy-text.ts';

export const STATUS_CHOICES = [
  { value: 'all', label: 'Any status' },
  { value: '2', label: '2xx' },
  { value: '3', label: '3xx' },
  { value: '4', label: '4xx' },
  { value: '5', label: '5xx' },
  { value: 'none', label: 'No answer' },
  { value: 'turned-away', label: 'Rejected' },
] as const;

export type StatusChoice = (typeof STATUS_CHOICES)[number]['value'];

export interface RequestFilter {
  readonly text: string;
  readonly status: StatusChoice;
  /** HTTP method to show. Empty for all methods. */
  readonly method: string;
}

export const NO_FILTER: RequestFilter = { text: '', status: 'all', method: '' };

type Filtered = Pick<CapturedRequest, 'id' | 'method' | 'path' | 'status' | 'replay_of' | 'policy'>;

/** Returns the requests that match the filter. Every word of the text must occur in the method, path, status, ID, or visitor's account. */
export const filterRequests = <T extends Filtered>(requests: readonly T[], filter: RequestFilter): readonly T[] => {
  const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0 && filter.status === 'all' && filter.method === '') return requests;
  return requests.filter(
    (request) =>
      hasStatus(request, filter.status) &&
      (filter.method === '' || request.method === filter.method) &&
      words.every((word) => textOf(request).includes(word)),
  );
};

const hasStatus = (request: Filtered, choice: StatusChoice): boolean => {
  const { status } = request;
  if (choice === 'all') return true;
  if (choice === 'turned-away') return isTurnedAway(request);
  return choice === 'none' ? status === null : status !== null && Math.floor(status / 100) === Number(choice);
};

const textOf = ({ id, method, path, status, replay_of, policy }: Filtered): string =>
  `${method} ${path} ${status ?? ''} ${id} ${replay_of === undefined ? '' : 'replay'} ${policy?.user ?? ''}`.toLowerCase();

/** Returns the methods of the requests and the selected method, in alphabetical order. */
export const methodsOf = (requests: readonly Pick<CapturedRequest, 'method'>[], chosen: string): string[] => {
  const methods = new Set(requests.map(({ method }) => method));
  if (chosen !== '') methods.add(chosen);
  return [...methods].sort();
};
