// Schemas on the page of the API: their fields in a table, their types as links.
import type { Schema } from './document-types.ts';
import { nameOfReference } from './example-of.ts';
import { anchor, escaped, prose } from './html.ts';

export const schemaAnchor = (name: string): string => anchor('schema', name);

/** A type in a few words, as HTML. */
export const typeOf = (schema: Schema): string => {
  if (schema.$ref !== undefined) {
    const name = nameOfReference(schema.$ref);
    return `<a href="#${schemaAnchor(name)}">${escaped(name)}</a>`;
  }
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) return choices.map(typeOf).join(' or ');
  if (schema.allOf !== undefined) return schema.allOf.map(typeOf).join(' and ');
  if (schema.enum !== undefined) return schema.enum.map((value) => `<code>${escaped(String(value))}</code>`).join(' ');
  if (schema.items !== undefined) return `array of ${typeOf(schema.items)}`;
  const type = [schema.type ?? 'any'].flat().join(' or ');
  return escaped(schema.format === undefined ? type : `${type} (${schema.format})`);
};

export const boundsOf = ({ minimum, maximum, minLength, maxLength, default: whenAbsent }: Schema): string => {
  const bounds = [
    minimum === undefined ? '' : `at least ${minimum}`,
    maximum === undefined ? '' : `at most ${maximum}`,
    minLength === undefined ? '' : `at least ${minLength} characters`,
    maxLength === undefined ? '' : `at most ${maxLength} characters`,
    whenAbsent === undefined ? '' : `default ${JSON.stringify(whenAbsent)}`,
  ];
  return escaped(bounds.filter((bound) => bound !== '').join(', '));
};

export const fieldTable = (schema: Schema): string => {
  const rows = Object.entries(schema.properties ?? {}).map(([name, field]) => {
    const required = schema.required?.includes(name) === true ? '' : ' <small>optional</small>';
    const notes = [prose(field.description ?? ''), boundsOf(field)].filter((note) => note !== '').join('; ');
    return `<tr><td><code>${escaped(name)}</code>${required}</td><td>${typeOf(field)}</td><td>${notes}</td></tr>`;
  });
  if (rows.length === 0) return '';
  return `<table><thead><tr><th>Field</th><th>Type</th><th>Notes</th></tr></thead><tbody>${rows.join('')}</tbody></table>`;
};

export const schemaSection = (name: string, schema: Schema): string => `
<section id="${schemaAnchor(name)}">
<h3><a href="#${schemaAnchor(name)}">${escaped(name)}</a></h3>
${schema.description === undefined ? '' : `<p>${prose(schema.description)}</p>`}
${fieldTable(schema) || `<p>${typeOf(schema)}</p>`}
</section>`;
