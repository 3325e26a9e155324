// One operation on the page of the API: what it takes, what it answers, and a command to try it with.
import { BEARER, EXTENSIONS } from '../route-parts.ts';
import { boundsOf, typeOf } from './docs-schema.ts';
import type { Answer, Operation, Parameter, PlacedOperation } from './document-types.ts';
import { anchor, codeBlock, escaped, jsonBlock, prose } from './html.ts';

export const operationAnchor = ({ method, path }: PlacedOperation): string => anchor(method, path);

export const operationSection = (placed: PlacedOperation, baseUrl: string): string => {
  const { method, path, operation } = placed;
  const id = operationAnchor(placed);
  return `
<section id="${id}" class="operation">
<h3><a href="#${id}"><b class="${method}">${method.toUpperCase()}</b> <code>${escaped(path)}</code></a></h3>
<p>${prose(operation.summary ?? '')}${notesOf(operation)}</p>
${operation.description === undefined ? '' : `<p>${prose(operation.description)}</p>`}
${parameterTable(operation.parameters ?? [])}
${bodyOf(operation)}
${codeBlock(curlOf(placed, baseUrl))}
${Object.entries(operation.responses)
  .map(([status, answer]) => answerOf(status, answer))
  .join('\n')}
</section>`;
};

const notesOf = ({ security, tags }: Operation): string => {
  const isPublic = security === undefined || security.length === 0;
  const notes = [isPublic ? 'public' : '', tags?.includes(EXTENSIONS) === true ? 'extension' : ''];
  return notes.map((note) => (note === '' ? '' : ` <small>${note}</small>`)).join('');
};

const parameterTable = (parameters: readonly Parameter[]): string => {
  if (parameters.length === 0) return '';
  const rows = parameters.map(({ name, in: place, required, description, schema = {} }) => {
    const notes = [prose(description ?? ''), boundsOf(schema)].filter((note) => note !== '').join('; ');
    const optional = required === true ? '' : ' <small>optional</small>';
    return `<tr><td><code>${escaped(name)}</code>${optional}</td><td>${place}</td><td>${typeOf(schema)}</td><td>${notes}</td></tr>`;
  });
  return `<table><thead><tr><th>Parameter</th><th>In</th><th>Type</th><th>Notes</th></tr></thead><tbody>${rows.join('')}</tbody></table>`;
};

const bodyOf = ({ requestBody }: Operation): string => {
  const media = requestBody?.content['application/json'];
  return media === undefined ? '' : `<p>Body: ${typeOf(media.schema ?? {})}</p>`;
};

const answerOf = (status: string, { description, content }: Answer): string => {
  const [media] = Object.values(content ?? {});
  const title = `<b class="s${status.charAt(0)}">${status}</b> ${prose(description)}`;
  if (media === undefined) return `<p class="answer">${title}</p>`;
  // Good answers are what people look for.
  const open = status.startsWith('2') ? ' open' : '';
  return `<details${open}><summary>${title} ${typeOf(media.schema ?? {})}</summary>${jsonBlock(media.example)}</details>`;
};

const curlOf = ({ method, path, operation }: PlacedOperation, baseUrl: string): string => {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const example = operation.parameters?.find((parameter) => parameter.name === name)?.example;
    return typeof example === 'string' && example !== 'text' ? example : `<${name.toUpperCase()}>`;
  });
  const body = operation.requestBody?.content['application/json']?.example;
  const words = [
    `curl${method === 'get' ? '' : ` -X ${method.toUpperCase()}`} '${baseUrl}${filled}'`,
    ...credentialsOf(operation),
    ...(body === undefined ? [] : ["-H 'content-type: application/json'", `-d '${quoted(JSON.stringify(body))}'`]),
  ];
  return words.join(' \\\n  ');
};

/** A quote inside of quotes, as a shell reads it. */
const quoted = (text: string): string => text.replaceAll("'", "'\\''");

const credentialsOf = ({ security, parameters = [] }: Operation): string[] => [
  ...(security?.[0]?.[BEARER] === undefined ? [] : ["-H 'authorization: Bearer <ACCESS_TOKEN>'"]),
  ...parameters
    .filter((parameter) => parameter.in === 'cookie')
    .map(({ name }) => `-b '${name}=<${name.toUpperCase()}>'`),
];
