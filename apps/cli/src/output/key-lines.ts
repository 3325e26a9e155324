// API keys in lines for people.
import type { ApiToken } from '@tunnel/contract';
import { oneLine } from '../problem-report.ts';
import type { Colours } from './colours.ts';
import { columns, counted, momentText } from './columns.ts';

export const keyLines = (keys: readonly ApiToken[], colours: Colours): string[] => {
  if (keys.length === 0) return ['no keys', '  Make one: tunnel keys create --label laptop --save'];
  const lines = columns(keys.map(cellsOf));
  return lines.map((line, at) => (keys[at]?.last_used_at === null ? colours.dim(line) : line).replace(/^ {2}/, ''));
};

const cellsOf = (key: ApiToken): string[] => [
  oneLine(key.id),
  oneLine(key.label),
  `made ${momentText(key.created_at)}`,
  key.last_used_at === null ? 'never used' : `used ${momentText(key.last_used_at)}`,
  counted(key.tunnel_count, 'tunnel', 'tunnels'),
  ...(key.unlimited ? ['unlimited'] : []),
];
