/** Names that requests and answers of Converse share. */

export const dialectId = 'bedrock-converse';

/** The maximum length of a tool name, in characters. */
export const maxToolName = 64;
