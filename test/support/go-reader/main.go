// Reads one JSON body a line, as a server written in Go would, and prints what it took for each member.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

type part struct {
	Type     string `json:"type,omitempty"`
	Text     string `json:"text,omitempty"`
	ImageURL *struct {
		URL string `json:"url,omitempty"`
	} `json:"image_url,omitempty"`
	Source *struct {
		Type string `json:"type,omitempty"`
		URL  string `json:"url,omitempty"`
	} `json:"source,omitempty"`
}

type request struct {
	Model               string `json:"model,omitempty"`
	MaxTokens           any    `json:"max_tokens,omitempty"`
	MaxCompletionTokens any    `json:"max_completion_tokens,omitempty"`
	Stream              any    `json:"stream,omitempty"`
	N                   any    `json:"n,omitempty"`
	System              any    `json:"system,omitempty"`
	ServiceTier         any    `json:"service_tier,omitempty"`
	Models              any    `json:"models,omitempty"`
	Fallbacks           any    `json:"fallbacks,omitempty"`
	Plugins             any    `json:"plugins,omitempty"`
	Messages            []struct {
		Role    string `json:"role,omitempty"`
		Content []part `json:"content,omitempty"`
	} `json:"messages,omitempty"`
	Input []struct {
		Role    string `json:"role,omitempty"`
		Content []struct {
			Type     string `json:"type,omitempty"`
			Text     string `json:"text,omitempty"`
			ImageURL any    `json:"image_url,omitempty"`
		} `json:"content,omitempty"`
	} `json:"input,omitempty"`
	MaxOutputTokens any `json:"max_output_tokens,omitempty"`
	Reasoning       *struct {
		Effort any `json:"effort,omitempty"`
	} `json:"reasoning,omitempty"`
	Tools []struct {
		Type  string `json:"type,omitempty"`
		Model string `json:"model,omitempty"`
	} `json:"tools,omitempty"`
	StreamOptions *struct {
		IncludeUsage any `json:"include_usage,omitempty"`
	} `json:"stream_options,omitempty"`
	Thinking *struct {
		Type         string `json:"type,omitempty"`
		BudgetTokens any    `json:"budget_tokens,omitempty"`
	} `json:"thinking,omitempty"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64*1024*1024)
	for lines.Scan() {
		var read request
		if err := json.Unmarshal(lines.Bytes(), &read); err != nil {
			fmt.Println(`{"error":true}`)
			continue
		}
		text, _ := json.Marshal(read)
		fmt.Println(string(text))
	}
}
