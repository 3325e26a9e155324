import { expect, it } from 'vitest';
import { parseOtlpHeaders } from './otlp-headers.rules.ts';

it.each([
  ['', {}],
  ['  ', {}],
  ['api-key=abc', { 'api-key': 'abc' }],
  ['Authorization=Basic dXNlcjpwYXNz, X-Team=edge', { authorization: 'Basic dXNlcjpwYXNz', 'x-team': 'edge' }],
  // Base64 ends with equals signs, and the variables of OpenTelemetry write a blank as %20.
  ['authorization=Basic%20dXNlcjo=', { authorization: 'Basic dXNlcjo=' }],
  ['a=1%2C2', { a: '1,2' }],
])('parses the headers %j', (text, headers) => expect(parseOtlpHeaders(text)).toEqual(headers));

it.each([
  ['no equals sign', 'abc'],
  ['an empty name', '=abc'],
  ['an empty value', 'a='],
  ['a comma at the end', 'a=1,'],
  ['a blank in the name', 'a b=1'],
  ['a colon in the name', 'a:b=1'],
  ['a repeated name', 'a=1,A=2'],
  ['a line break in the value', 'a=1\r\nb: 2'],
  ['an encoded line break in the value', 'a=1%0D%0Ab: 2'],
  ['a character outside of ASCII', 'a=ü'],
  ['a broken escape', 'a=100%'],
  ['a header of the exporter', 'Content-Type=text/plain'],
  ['a header of the connection', 'host=elsewhere'],
])('rejects %s', (_, text) => expect(parseOtlpHeaders(text)).toBeNull());
