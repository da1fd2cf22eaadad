"""Cases of images and text with one question each (MedThinkVQA): read, checked and converted to studies."""
