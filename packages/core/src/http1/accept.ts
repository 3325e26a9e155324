// Whether the visitor would rather read JSON than a page (RFC 9110, 12.5.1, as far as two answers need it).
import { eachListItem } from './list-items.ts';

/** A page unless JSON is named and no page is wanted as much: browsers name text/html, programs that name nothing get a page, too. */
export const prefersJson = (accept: string | null): boolean => {
  if (accept === null) return false;
  let json = 0;
  let page = 0;
  eachListItem(accept.toLowerCase(), (range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim());
    const weight = weightOf(parameters);
    if (type === 'application/json' || type.endsWith('+json')) json = Math.max(json, weight);
    else if (type === 'text/html' || type === 'application/xhtml+xml') page = Math.max(page, weight);
  });
  return json > page;
};

const weightOf = (parameters: readonly string[]): number => {
  const given = parameters.find((parameter) => parameter.startsWith('q='));
  const weight = given === undefined ? 1 : Number(given.slice(2));
  return weight >= 0 && weight <= 1 ? weight : 0;
};
