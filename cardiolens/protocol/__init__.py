"""The protocol: tasks, frame selection, prompts, dialogues, and the MedThinkVQA cases."""
