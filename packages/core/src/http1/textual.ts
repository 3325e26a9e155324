// Which bodies a person can read: by content type, as the sender says it.

const READABLE =
  /^(?:text\/|application\/(?:json|xml|javascript|ecmascript|x-javascript|x-www-form-urlencoded|graphql|ndjson|x-ndjson|json-seq|yaml|x-yaml|toml|sql)\b|(?:application|image|model|message)\/[^;\s]+\+(?:json|xml|yaml)\b)/i;

/** null: nobody said that it is text. */
export const isTextual = (contentType: string | null): boolean => contentType !== null && READABLE.test(contentType);
